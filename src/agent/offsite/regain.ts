// Indexes that the disk has lost are brought back from the mirror: without them nobody knows what is in the packs that only the
// mirror has.
import type { BlobStore } from '../../blobs/store.ts'
import { Damage } from '../backups/format/format.ts'
import { settleDoubts } from '../backups/store/healing.ts'
import { readIndex } from '../backups/store/index-blobs.ts'
import type { Repository } from '../backups/store/repository.ts'
import { inMemory } from '../backups/store/sound-blobs.ts'
import type { Blob } from './mirror-plan.ts'

/** Whether there was one. The packs that they list and the disk does not have are read from the mirror from then on. */
export async function regainIndexes(
  repository: Repository,
  mirror: Pick<BlobStore, 'get'>,
  indexes: readonly Blob[],
  signal: AbortSignal,
): Promise<boolean> {
  let isRegained = false
  {
    // A reclaim would take them for its own.
    using _alone = await repository.writing.exclusive(signal)
    for (const { name } of indexes) {
      const bytes = Buffer.from(await mirror.get(name))
      try {
        await readIndex(inMemory(bytes), repository.sealer, name)
      } catch (error) {
        if (!(error instanceof Damage)) throw error
        continue
      }
      await repository.blobs.put(name, bytes)
      isRegained = true
    }
    if (isRegained) await repository.reload()
  }
  if (isRegained) await settleDoubts(repository, signal)
  return isRegained
}

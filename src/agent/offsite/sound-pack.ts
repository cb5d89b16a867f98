// Packs are looked at before they are sent: what the mirror gets is what was written, and not what a disk has made of it since.
import { lastSegment } from '../backups/format/format.ts'
import { type CheckedStore, checkAndHeal, createFindings } from '../backups/maintain/checks.ts'
import type { Repository } from '../backups/store/repository.ts'

/** Whether all of the pack is sound, by its spans where it has some. What is not is written down. One that is gone is not ours to judge. */
export async function isSoundHere(repository: Repository, name: string, signal: AbortSignal): Promise<boolean> {
  const { pool, index, blobs } = repository
  const packId = lastSegment(name)
  using _shared = await repository.writing.share(signal)
  if (!repository.packs.has(packId)) return true
  const spans = index.packNotes.get(packId)?.spans ?? null
  const store: CheckedStore = {
    blobs,
    decode: (job) => pool.decode({ ...job, isStrict: false, spans }),
    isReadFrom: () => true,
  }
  return await checkAndHeal(repository, store, packId, () => true, createFindings())
}

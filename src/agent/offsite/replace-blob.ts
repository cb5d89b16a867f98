// What the mirror has of a blob is not what the store has, or is known to be damaged. It is replaced only by what is known to
// be sound, since the store may be what was damaged, by a disk or by an attacker.
import { BlobMissing } from '../../blobs/store.ts'
import type { Repository } from '../backups/store/repository.ts'
import { inMemory, readSound } from '../backups/store/sound-blobs.ts'
import type { Blob } from './mirror-plan.ts'
import { sendBlob, type Wire } from './send-blob.ts'

/** `unsound`: that of the store is not what was written, so the mirror keeps its own. `gone`: the store has it no longer. */
export type Replacement = Blob | 'unsound' | 'gone'

/** A pack, an index, a part or a manifest. The bytes that are sent are those that were checked: one at a time, it is all in memory. */
export async function replaceBlob(wire: Wire, repository: Repository, name: string): Promise<Replacement> {
  const bytes = await readInStore(repository, name, wire.signal)
  if (bytes === 'gone' || bytes === undefined) return bytes ?? 'unsound'
  const blob = { name, sizeBytes: bytes.length }
  return (await sendBlob({ ...wire, local: inMemory(bytes) }, blob, true)) ?? 'gone'
}

async function readInStore(repository: Repository, name: string, signal: AbortSignal) {
  using _shared = await repository.writing.share(signal)
  try {
    return await readSound(repository, name)
  } catch (error) {
    if (error instanceof BlobMissing) return 'gone'
    throw error
  }
}

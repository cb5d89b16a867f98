// Streams content out of a backup: one block after another, each checked, in constant memory.

import { BlobMissing } from '../../../blobs/store.ts'
import { fail } from '../../../contract/errors.ts'
import { createTurns } from '../../../kit/turns.ts'
import { blocksBetween } from '../format/block-runs.ts'
import type { Entry } from '../format/entries.ts'
import { BLOCK_BYTES, ID_BYTES, packBlob } from '../format/format.ts'
import { sameId } from '../format/seal.ts'
import type { Repository } from '../store/repository.ts'

const FRAMES_KEPT = 16

export interface ContentReader {
  /** The bytes of a file from `start` up to, not including, `end`. Throws `backup_damaged` before a wrong byte is given. */
  read(
    entry: Pick<Entry, 'content' | 'sizeBytes' | 'path'>,
    start?: number,
    end?: number,
  ): AsyncGenerator<Uint8Array, void, undefined>
}

/** `share`: whose time on this thread it takes to check the blocks. */
export function createContentReader(repository: Repository, share: string): ContentReader {
  const turn = createTurns(share)
  /** Small files share frames: the last few are kept, so that a frame is not fetched once for every file in it. */
  const frames = new Map<string, Uint8Array>()

  async function frameAt(block: number): Promise<Uint8Array> {
    const { packId, ...place } = repository.index.place(block)
    const key = `${packId} ${place.offset}`
    const kept = frames.get(key)
    if (kept) return kept
    const stored = await repository.blobs.get(packBlob(packId), { offset: place.offset, length: place.storedLength })
    const raw = repository.sealer.decode(stored, place, false)
    frames.set(key, raw)
    const oldest = frames.keys().next().value
    if (frames.size > FRAMES_KEPT && oldest !== undefined) frames.delete(oldest)
    return raw
  }

  async function blockOf(id: Uint8Array, length: number, path: string): Promise<Uint8Array> {
    const block = repository.index.findAny(id)
    if (block < 0) throw damaged(path)
    const { inner, packId } = repository.index.place(block)
    let bytes: Uint8Array
    try {
      bytes = (await frameAt(block)).subarray(inner, inner + length)
    } catch (error) {
      // A reclaim has moved the block since it was looked up.
      const again = error instanceof BlobMissing ? repository.index.findAny(id) : -1
      if (again < 0 || repository.index.place(again).packId === '') throw damaged(path, error)
      const moved = repository.index.place(again)
      bytes = (await frameAt(again)).subarray(moved.inner, moved.inner + length)
    }
    if (turn.due()) await turn.take()
    if (!sameId(repository.sealer.idOf(bytes), id)) {
      await repository.recordDamage([{ id, packId }])
      throw damaged(path)
    }
    return bytes
  }

  return {
    async *read(entry, start = 0, end = entry.sizeBytes) {
      if (start >= end) return
      for (const { idAt, offset, length } of blocksBetween(entry, start, end)) {
        const from = Math.max(0, start - offset)
        const to = Math.min(length, end - offset)
        const whole =
          idAt < 0 ? zeros : await blockOf(entry.content.subarray(idAt, idAt + ID_BYTES), length, entry.path)
        yield whole.subarray(from, to)
      }
    },
  }
}

const zeros = new Uint8Array(BLOCK_BYTES)

function damaged(path: string, cause?: unknown) {
  return fail('backup_damaged', `The content of ${JSON.stringify(path)} in this backup is damaged.`, cause)
}

// Compares a file with a backup on the worker threads, in pieces: so that other work does not wait for all of a large
// file, and a cancellation takes effect after each piece.
import { namesOf } from '../format/block-runs.ts'
import { BLOCK_BYTES, ID_BYTES } from '../format/format.ts'
import type { Pool } from './pool.ts'

const BLOCKS_AT_ONCE = 256

export async function hasSameContent(
  pool: Pick<Pool, 'hash'>,
  fd: number,
  entry: { content: Uint8Array; sizeBytes: number },
  signal?: AbortSignal,
): Promise<boolean> {
  const names = namesOf(entry.content)
  for (let first = 0; first * ID_BYTES < names.length; first += BLOCKS_AT_ONCE) {
    signal?.throwIfAborted()
    const from = first * BLOCK_BYTES
    const size = Math.min(BLOCKS_AT_ONCE * BLOCK_BYTES, entry.sizeBytes - from)
    const { same } = await pool.hash({
      fd,
      from,
      size,
      ids: names.slice(first * ID_BYTES, (first + BLOCKS_AT_ONCE) * ID_BYTES),
    })
    if (!same) return false
  }
  return true
}

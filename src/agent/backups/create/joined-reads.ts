// What was read of a file, segment by segment, as one.
import { concat } from '../../../kit/bytes.ts'
import type { Prints } from '../blocks/block-prints.ts'
import { contentOf } from '../format/block-runs.ts'
import { BLOCK_BYTES, ID_BYTES } from '../format/format.ts'
import { type FileRead, SEGMENT_BYTES, ZERO_BLOCK } from '../workers/worker-jobs.ts'

export interface JoinedReads {
  sizeBytes: number
  content: Uint8Array
  prints: Prints | undefined
}

/** Up to where the file ended: one that was cut while it was read ends there. */
export function joinReads(reads: FileRead[]): JoinedReads {
  const [only] = reads
  if (only && reads.length === 1 && !only.prints)
    return { sizeBytes: only.length, content: contentIn(only.ids, only.flags, only.length), prints: undefined }
  const [ids, flags] = [joined(reads.map((read) => read.ids)), joined(reads.map((read) => read.flags))]
  const cut = reads.findIndex(({ length }) => length < SEGMENT_BYTES)
  const last = cut < 0 ? reads.length - 1 : cut
  const sizeBytes = last * SEGMENT_BYTES + (reads[last]?.length ?? 0)
  return { sizeBytes, content: contentIn(ids, flags, sizeBytes), prints: joinPrints(reads) }
}

function contentIn(ids: Uint8Array, flags: Uint8Array, sizeBytes: number): Uint8Array {
  const held = Math.ceil(sizeBytes / BLOCK_BYTES) * ID_BYTES
  return contentOf(held < ids.length ? ids.subarray(0, held) : ids, (block) => flags[block] === ZERO_BLOCK)
}

/** Mostly there is one. */
const joined = (parts: Uint8Array[]) => (parts.length === 1 && parts[0] ? parts[0] : concat(parts))

/** In memory of their own: they are kept. */
function joinPrints(reads: FileRead[]): Prints | undefined {
  const prints = reads.flatMap((read) => read.prints ?? [])
  if (prints.length < reads.length) return undefined
  return { prints: concat(prints), ids: concat(reads.map(({ ids }) => ids)) }
}

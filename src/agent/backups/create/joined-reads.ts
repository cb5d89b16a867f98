// What was read of a file, segment by segment, as one.
import { concat } from '../../../kit/bytes.ts'
import type { Prints } from '../blocks/block-prints.ts'
import { contentOf, onlyBlock } from '../format/block-runs.ts'
import { BLOCK_BYTES, ID_BYTES } from '../format/format.ts'
import { type FileRead, SEGMENT_BYTES, ZERO_BLOCK } from '../workers/worker-jobs.ts'

export interface JoinedReads {
  error: string | null
  /** The error is that it could not be opened. */
  isUnopened: boolean
  /** It changed meanwhile. */
  isTorn: boolean
  sizeBytes: number
  content: Uint8Array
  prints: Prints | undefined
}

/** Of a file that was read in one go, as most are. */
export function joinedRead(read: FileRead): JoinedReads {
  if (read.prints) return joinReads([read])
  const { error, isUnopened, changed: isTorn, length: sizeBytes, ids, flags, firstBlock, blockCount } = read
  const isOne = blockCount === 1 && sizeBytes > 0 && flags[firstBlock] !== ZERO_BLOCK
  const content = isOne ? onlyBlock(ids, firstBlock * ID_BYTES) : contentIn(idsOf(read), flagsOf(read), sizeBytes)
  return { error, isUnopened, isTorn, sizeBytes, content, prints: undefined }
}

/** Up to where the file ended: one that was cut while it was read ends there. */
export function joinReads(reads: readonly FileRead[]): JoinedReads {
  const [ids, flags] = [joined(reads.map(idsOf)), joined(reads.map(flagsOf))]
  const cut = reads.findIndex(({ length }) => length < SEGMENT_BYTES)
  const last = cut < 0 ? reads.length - 1 : cut
  const sizeBytes = last * SEGMENT_BYTES + (reads[last]?.length ?? 0)
  return {
    error: reads.find(({ error }) => error !== null)?.error ?? null,
    isUnopened: reads.some(({ isUnopened }) => isUnopened),
    isTorn: reads.some(({ changed }) => changed),
    sizeBytes,
    content: contentIn(ids, flags, sizeBytes),
    prints: joinPrints(reads),
  }
}

const idsOf = ({ ids, firstBlock, blockCount }: FileRead) =>
  ids.subarray(firstBlock * ID_BYTES, (firstBlock + blockCount) * ID_BYTES)
const flagsOf = ({ flags, firstBlock, blockCount }: FileRead) => flags.subarray(firstBlock, firstBlock + blockCount)

function contentIn(ids: Uint8Array, flags: Uint8Array, sizeBytes: number): Uint8Array {
  const held = Math.ceil(sizeBytes / BLOCK_BYTES) * ID_BYTES
  return contentOf(held < ids.length ? ids.subarray(0, held) : ids, (block) => flags[block] === ZERO_BLOCK)
}

/** Mostly there is one. */
const joined = (parts: Uint8Array[]) => (parts.length === 1 && parts[0] ? parts[0] : concat(parts))

/** In memory of their own: they are kept. */
function joinPrints(reads: readonly FileRead[]): Prints | undefined {
  const prints = reads.flatMap((read) => read.prints ?? [])
  if (prints.length < reads.length) return undefined
  return { prints: concat(prints), ids: concat(reads.map(idsOf)) }
}

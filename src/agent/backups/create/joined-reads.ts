// What was read of a file, segment by segment, as one.
import { concat } from '../../../kit/bytes.ts'
import type { Prints } from '../blocks/block-prints.ts'
import type { PriorBlocks } from '../blocks/prior-blocks.ts'
import { contentOf, onlyBlock } from '../format/block-runs.ts'
import { BLOCK_BYTES, ID_BYTES } from '../format/format.ts'
import type { Patch } from '../format/patched.ts'
import { type FileRead, PATCHED_BLOCK, SEGMENT_BYTES, ZERO_BLOCK } from '../workers/worker-jobs.ts'

export interface JoinedReads {
  error: string | null
  /** The error is that it could not be opened. */
  isUnopened: boolean
  /** It changed meanwhile. */
  isTorn: boolean
  sizeBytes: number
  content: Uint8Array
  /** Some of its blocks are listed as patched. */
  isPatched: boolean
  prints: Prints | undefined
}

export const NOTHING_READ: JoinedReads = {
  error: null,
  isUnopened: false,
  isTorn: false,
  sizeBytes: 0,
  content: new Uint8Array(),
  isPatched: false,
  prints: undefined,
}

/** Of a file that was read in one go, as most are. */
export function joinedRead(read: FileRead, prior?: PriorBlocks): JoinedReads {
  const { error, isUnopened, changed: isTorn, length: sizeBytes, ids, flags, firstBlock, blockCount } = read
  const isOne = blockCount === 1 && sizeBytes > 0 && flags[firstBlock] !== ZERO_BLOCK && !prior
  if (!isOne) return joinReads([read], prior)
  const content = onlyBlock(ids, firstBlock * ID_BYTES)
  return { ...NOTHING_READ, error, isUnopened, isTorn, sizeBytes, content }
}

/** Up to where the file ended: one that was cut while it was read ends there. */
export function joinReads(reads: readonly FileRead[], prior?: PriorBlocks): JoinedReads {
  const [ids, flags] = [joined(reads.map(idsOf)), joined(reads.map(flagsOf))]
  const cut = reads.findIndex(({ length }) => length < SEGMENT_BYTES)
  const last = cut < 0 ? reads.length - 1 : cut
  const sizeBytes = last * SEGMENT_BYTES + (reads[last]?.length ?? 0)
  const held = Math.ceil(sizeBytes / BLOCK_BYTES) * ID_BYTES
  let isPatched = false
  const patchOf = (block: number) => {
    const patch = prior && patchAmong(reads, block, prior)
    isPatched ||= patch !== undefined
    return patch
  }
  const content = contentOf(
    held < ids.length ? ids.subarray(0, held) : ids,
    (block) => flags[block] === ZERO_BLOCK,
    prior && patchOf,
  )
  return {
    error: reads.find(({ error }) => error !== null)?.error ?? null,
    isUnopened: reads.some(({ isUnopened }) => isUnopened),
    isTorn: reads.some(({ changed }) => changed),
    sizeBytes,
    content,
    isPatched,
    prints: joinPrints(reads),
  }
}

const SEGMENT_BLOCKS = SEGMENT_BYTES / BLOCK_BYTES

function patchAmong(reads: readonly FileRead[], block: number, prior: PriorBlocks): Patch | undefined {
  const segment = Math.floor(block / SEGMENT_BLOCKS)
  const read = reads[segment]
  return read && patchIn(read, block - segment * SEGMENT_BLOCKS, prior, segment * SEGMENT_BLOCKS)
}

/** How a block is listed, where that is as patched. `block`: of the read, which begins with the block `first` of the file. */
export function patchIn(
  { ids, flags, sectors, firstBlock }: FileRead,
  block: number,
  prior: PriorBlocks | undefined,
  first: number,
): Patch | undefined {
  const at = firstBlock + block
  const flag = flags[at]
  if (!prior || (flag !== 0 && flag !== PATCHED_BLOCK)) return undefined
  if (flag === 0) return prior.patchOf(first + block, ids, at * ID_BYTES)
  const patchAt = (flags.length + at) * ID_BYTES
  return {
    sectors: sectors[at] ?? 0,
    base: prior.baseOf(first + block),
    patch: ids.subarray(patchAt, patchAt + ID_BYTES),
  }
}

const idsOf = ({ ids, firstBlock, blockCount }: FileRead) =>
  ids.subarray(firstBlock * ID_BYTES, (firstBlock + blockCount) * ID_BYTES)
const flagsOf = ({ flags, firstBlock, blockCount }: FileRead) => flags.subarray(firstBlock, firstBlock + blockCount)

/** Mostly there is one. */
const joined = (parts: Uint8Array[]) => (parts.length === 1 && parts[0] ? parts[0] : concat(parts))

/** In memory of their own: they are kept. */
function joinPrints(reads: readonly FileRead[]): Prints | undefined {
  const prints = reads.flatMap((read) => read.prints ?? [])
  if (prints.length < reads.length) return undefined
  return { prints: concat(prints), ids: concat(reads.map(idsOf)) }
}

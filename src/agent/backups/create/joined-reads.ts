// What was read of a file, segment by segment, as one.
import { concat } from '../../../kit/bytes.ts'
import type { Prints } from '../blocks/block-prints.ts'
import type { PriorBlocks } from '../blocks/prior-blocks.ts'
import { contentOf, onlyBlock } from '../format/block-runs.ts'
import { BLOCK_BYTES, ID_BYTES } from '../format/format.ts'
import type { Patch } from '../format/patched.ts'
import { type FileRead, PATCHED_BLOCK, SEGMENT_BYTES, ZERO_BLOCK } from '../workers/worker-jobs.ts'
import type { Part } from './file-part.ts'

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

/** What was read, with how its blocks are to be listed. */
export interface ListedRead extends FileRead {
  /** Those that are listed as patched, by their place in the read. */
  patches?: ReadonlyMap<number, Patch>
}

/** Of each part, what was read of it: once for all, by what the last backup lists of the file. */
export function listPatches(reads: ListedRead[], parts: readonly Part[]): ListedRead[] {
  let index = 0
  for (const { file, from } of parts) {
    const read = reads[index++]
    if (read && file.prior) read.patches = patchesIn(read, file.prior, from / BLOCK_BYTES)
  }
  return reads
}

/** `first`: which block of the file the read begins with. */
function patchesIn(read: FileRead, prior: PriorBlocks, first: number): Map<number, Patch> {
  const { ids, flags, sectors, firstBlock, length } = read
  const patches = new Map<number, Patch>()
  for (let block = 0; block * BLOCK_BYTES < length; block++) {
    const at = firstBlock + block
    const flag = flags[at]
    if (flag === PATCHED_BLOCK) {
      const patchAt = (flags.length + at) * ID_BYTES
      const patch = ids.subarray(patchAt, patchAt + ID_BYTES)
      patches.set(block, { sectors: sectors[at] ?? 0, base: prior.baseOf(first + block), patch })
    }
    const same = flag === 0 ? prior.patchOf(first + block, ids, at * ID_BYTES) : undefined
    if (same) patches.set(block, same)
  }
  return patches
}

/** Of a file that was read in one go, as most are. */
export function joinedRead(read: ListedRead): JoinedReads {
  const { error, isUnopened, changed: isTorn, length: sizeBytes, ids, flags, firstBlock, blockCount } = read
  const isOne = blockCount === 1 && sizeBytes > 0 && flags[firstBlock] !== ZERO_BLOCK
  // A file that has just become as short may be patched, or have prints.
  if (!isOne || read.patches || read.prints) return joinReads([read])
  const content = onlyBlock(ids, firstBlock * ID_BYTES)
  return { ...NOTHING_READ, error, isUnopened, isTorn, sizeBytes, content }
}

/** Up to where the file ended: one that was cut while it was read ends there. */
export function joinReads(reads: readonly ListedRead[]): JoinedReads {
  const [ids, flags] = [joined(reads.map(idsOf)), joined(reads.map(flagsOf))]
  const cut = reads.findIndex(({ length }) => length < SEGMENT_BYTES)
  const last = cut < 0 ? reads.length - 1 : cut
  const sizeBytes = last * SEGMENT_BYTES + (reads[last]?.length ?? 0)
  const held = Math.ceil(sizeBytes / BLOCK_BYTES) * ID_BYTES
  const isPatched = reads.some(({ patches }) => patches !== undefined && patches.size > 0)
  const patchOf = (block: number) => reads[Math.floor(block / SEGMENT_BLOCKS)]?.patches?.get(block % SEGMENT_BLOCKS)
  const content = contentOf(
    held < ids.length ? ids.subarray(0, held) : ids,
    (block) => flags[block] === ZERO_BLOCK,
    isPatched ? patchOf : undefined,
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

// The reading side of a worker thread: reads files, splits them into blocks, hashes and compresses them. It works on
// descriptors, and on names in directories that somebody else holds open.
import { fstatSync } from 'node:fs'
import { asBuffer } from '../../../kit/bytes.ts'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import { readFully } from '../../../kit/files/read-fully.ts'
import { addressHere } from '../../files/sandbox/addresses.ts'
import { filterHas } from '../blocks/block-filter.ts'
import {
  isPrintOf,
  PRINT_BYTES,
  type Prints,
  printBytes,
  STRETCH_BLOCKS,
  STRETCH_BYTES,
} from '../blocks/block-prints.ts'
import { createFirsts } from '../blocks/first-blocks.ts'
import { isSameId, type PriorRange } from '../blocks/prior-blocks.ts'
import { isNoName } from '../format/block-runs.ts'
import { BLOCK_BYTES, FRAME_BYTES, ID_BYTES } from '../format/format.ts'
import type { Gmac } from '../format/gmac.ts'
import { createTableBuilder, type TableBuilder } from '../format/pack-table.ts'
import { CODEC_ZSTD, type Sealer } from '../format/seal.ts'
import { createSpanBuilder, type SpanBuilder } from '../format/spans.ts'
import { OPEN_FILE } from '../tree/unchanged.ts'
import type { FileRange, HashJob, HashResult, RangeRead, ReadJob, ReadResult } from './worker-jobs.ts'
import { errorCode, NEW_BLOCK, PATCHED_BLOCK, packReads, unpackRanges, ZERO_BLOCK } from './worker-jobs.ts'
import type { Patcher } from './worker-patch.ts'

const zeros = Buffer.alloc(BLOCK_BYTES)
/** A thread reads one thing at a time. These stay in the processor's cache, where whatever looks at them is fast. */
const window = Buffer.allocUnsafeSlow(STRETCH_BYTES)
const bundle = Buffer.allocUnsafeSlow(FRAME_BYTES)
/** Blocks no larger than this are compressed together. */
const SMALL_BYTES = BLOCK_BYTES / 2
/** Data that is left this large by zstd may as well be compressed already, but for zeros between its pieces. */
const DOUBTFUL = 0.75

interface Output {
  slot: Buffer
  used: number
  table: TableBuilder
  spans: SpanBuilder
  /** Of the blocks of all files, and then of their patches, if there may be some. */
  ids: Buffer
  flags: Uint8Array
  sectors: Uint16Array
  patcher: Patcher | null
  bundled: number
  /** What is in the bundle: where the id of each stands, and its length. */
  bundleBlocks: { idAt: number; length: number }[]
  /** The last frame did not shrink much. */
  isDoubtful: boolean
  filter: Uint32Array | null
  isFirst(idAt: number): boolean
}

export interface Tools {
  sealer: Sealer
  /** Null where nothing is patched. */
  patcher: Patcher | null
  print: Gmac | null
  /** Of a span; null where none are made. */
  gmac: Gmac | null
}

export function readFiles(tools: Tools, job: ReadJob): ReadResult {
  const files = unpackRanges(job.files)
  const blockCounts = files.map(({ from, to }) => Math.ceil((to - from) / BLOCK_BYTES))
  const blockCount = blockCounts.reduce((sum, count) => sum + count, 0)
  const mayPatch = files.some(({ prior }) => prior !== null)
  const ids = Buffer.alloc(blockCount * (mayPatch ? 2 : 1) * ID_BYTES)
  const flags = new Uint8Array(blockCount)
  const sectors = new Uint16Array(mayPatch ? blockCount : 0)
  const output: Output = {
    slot: Buffer.from(job.slot, 0, job.slot.byteLength),
    used: 0,
    table: createTableBuilder(),
    spans: createSpanBuilder(tools.gmac),
    ids,
    flags,
    sectors,
    patcher: tools.patcher,
    bundled: 0,
    bundleBlocks: [],
    isDoubtful: true,
    filter: job.filter && new Uint32Array(job.filter),
    isFirst: createFirsts(ids, ids.length / ID_BYTES),
  }
  let block = 0
  const reads = files.map((file, index) => {
    const first = block
    block += blockCounts[index] ?? 0
    return readIfPossible(tools, output, file, first)
  })
  flushBundle(tools.sealer, output)
  const { used, slot } = output
  const spans = output.spans.take(slot)
  return { ...packReads(reads), blockCounts, ids, flags, sectors, used, table: output.table.take(), spans }
}

function readIfPossible(tools: Tools, output: Output, file: FileRange, firstBlock: number): RangeRead {
  let opened: Descriptor | undefined
  try {
    if (file.address !== null) {
      opened = openDescriptor(addressHere(file.address), OPEN_FILE)
      file.fd = opened.fd
    }
    return readOne(tools, output, file, firstBlock)
  } catch (error) {
    const isUnopened = file.address !== null && opened === undefined
    return { error: errorCode(error), isUnopened, changed: false, length: 0, prints: null }
  } finally {
    // Not `using`: for each of very many files that is a quarter of a microsecond.
    opened?.[Symbol.dispose]()
  }
}

function readOne({ sealer, print }: Tools, output: Output, file: FileRange, firstBlock: number): RangeRead {
  const { fd, from, to, known, prior } = file
  const prints = file.isPrinted && print ? new Uint8Array(printBytes(to - from)) : null
  output.patcher?.begin()
  let at = from
  for (let stretch = 0; at < to; stretch++) {
    const wanted = Math.min(STRETCH_BYTES, to - at)
    const bytes = window.subarray(0, readFully(fd, window, wanted, at))
    at += bytes.length
    const block = firstBlock + stretch * STRETCH_BLOCKS
    const made = prints && print ? print(bytes) : null
    if (made) prints?.set(made, stretch * PRINT_BYTES)
    if (made && known && isPrintOf(known, stretch, made)) takeNames(output, known, stretch, bytes.length, block)
    else storeBlocks(sealer, output, bytes, block, prior && { ...prior, first: stretch * STRETCH_BLOCKS })
    if (bytes.length < wanted) break
  }
  return { error: null, isUnopened: false, changed: at < to || !isAsSeen(file), length: at - from, prints }
}

/** Whether nobody has touched it from when the walk saw it until now. */
function isAsSeen({ fd, size, mtimeNs, ctimeNs }: FileRange): boolean {
  const now = fstatSync(fd, { bigint: true })
  return now.size === size && now.mtimeNs === mtimeNs && now.ctimeNs === ctimeNs
}

/** The stretch is what it was. */
function takeNames({ ids, flags }: Output, known: Prints, stretch: number, length: number, firstBlock: number): void {
  const from = stretch * STRETCH_BLOCKS * ID_BYTES
  const end = from + Math.ceil(length / BLOCK_BYTES) * ID_BYTES
  ids.set(known.ids.subarray(from, end), firstBlock * ID_BYTES)
  for (let at = from, block = firstBlock; at < end; at += ID_BYTES, block++)
    if (isNoName(known.ids, at)) flags[block] = ZERO_BLOCK
}

/** `prior.first`: the place of the first block in it. */
function storeBlocks(
  sealer: Sealer,
  output: Output,
  bytes: Buffer,
  firstBlock: number,
  prior: (PriorRange & { first: number }) | null,
): void {
  for (let start = 0, block = firstBlock; start < bytes.length; start += BLOCK_BYTES, block++) {
    const raw = bytes.length <= BLOCK_BYTES ? bytes : bytes.subarray(start, start + BLOCK_BYTES)
    const isZero = raw.length === BLOCK_BYTES && raw.equals(zeros)
    if (isZero) output.flags[block] = ZERO_BLOCK
    else if (prior)
      output.flags[block] = storeAgain(sealer, output, raw, block, prior, prior.first + block - firstBlock)
    else output.flags[block] = storeBlock(sealer, output, raw, block * ID_BYTES)
  }
}

/** A block of a file that the last backup has: as it was, as a patch, or as any other. `at`: its place in `prior`. */
function storeAgain(sealer: Sealer, output: Output, raw: Buffer, block: number, prior: PriorRange, at: number): number {
  const { ids, filter } = output
  sealer.nameTo(ids, block * ID_BYTES, raw)
  if (isSameId(prior.names, at * ID_BYTES, ids, block * ID_BYTES)) return 0
  if (filter && filterHas(filter, ids, block * ID_BYTES)) return 0
  const patch = raw.length === BLOCK_BYTES ? output.patcher?.patch(raw, prior, at) : undefined
  if (!patch) return storeNamed(sealer, output, raw, block * ID_BYTES)
  const patchAt = (output.flags.length + block) * ID_BYTES
  output.sectors[block] = patch.sectors
  storeBlock(sealer, output, patch.bytes, patchAt)
  return PATCHED_BLOCK
}

/** Returns the block's flag. */
function storeBlock(sealer: Sealer, output: Output, raw: Buffer, idAt: number): number {
  const { ids, filter } = output
  sealer.nameTo(ids, idAt, raw)
  return filter && filterHas(filter, ids, idAt) ? 0 : storeNamed(sealer, output, raw, idAt)
}

/** One that should not be in the store, unless it came before. */
function storeNamed(sealer: Sealer, output: Output, raw: Buffer, idAt: number): number {
  const { ids } = output
  if (!output.isFirst(idAt)) return 0
  const { length } = raw
  if (length <= SMALL_BYTES) addToBundle(sealer, output, raw, idAt)
  else {
    addFrame(sealer, output, raw, 1)
    output.table.addBlock(ids, idAt, 0, length)
  }
  return NEW_BLOCK
}

function addToBundle(sealer: Sealer, output: Output, raw: Buffer, idAt: number): void {
  if (output.bundled + raw.length > FRAME_BYTES) flushBundle(sealer, output)
  raw.copy(bundle, output.bundled)
  output.bundled += raw.length
  output.bundleBlocks.push({ idAt, length: raw.length })
}

function flushBundle(sealer: Sealer, output: Output): void {
  const { bundled, bundleBlocks, table, ids } = output
  if (bundled === 0) return
  addFrame(sealer, output, bundle.subarray(0, bundled), bundleBlocks.length)
  let inner = 0
  for (const { idAt, length } of bundleBlocks) {
    table.addBlock(ids, idAt, inner, length)
    inner += length
  }
  output.bundled = 0
  output.bundleBlocks = []
}

function addFrame(sealer: Sealer, output: Output, raw: Buffer, blockCount: number): void {
  const { slot, used, table } = output
  const { bytes, codec, rawLength, crc } = sealer.encode(raw, output.isDoubtful, slot.subarray(used))
  output.isDoubtful = (codec & CODEC_ZSTD) === 0 || bytes.length > rawLength * DOUBTFUL
  // Not `set`, which takes shared memory byte by byte.
  if (bytes.buffer !== slot.buffer) asBuffer(bytes).copy(slot, used)
  output.used += bytes.length
  output.spans.addFrame(slot, output.used)
  table.addFrame({ offset: used, storedLength: bytes.length, rawLength, codec, crc }, blockCount)
}

/** The names that blocks of a file would have, to tell whether it is what a backup holds. */
export function hashFile(sealer: Sealer, job: HashJob): HashResult {
  const count = Math.ceil(job.size / BLOCK_BYTES)
  for (let index = 0; index < count; index++) {
    const wanted = Math.min(BLOCK_BYTES, job.size - index * BLOCK_BYTES)
    if (readFully(job.fd, window, wanted, job.from + index * BLOCK_BYTES) !== wanted) return { same: false }
    const raw = window.subarray(0, wanted)
    const idAt = index * ID_BYTES
    const isSame = isNoName(job.ids, idAt)
      ? raw.equals(wanted === BLOCK_BYTES ? zeros : zeros.subarray(0, wanted))
      : sealer.idOf(raw).compare(job.ids, idAt, idAt + ID_BYTES) === 0
    if (!isSame) return { same: false }
  }
  return { same: true }
}

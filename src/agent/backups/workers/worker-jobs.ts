// The messages between the engine and its worker threads.
import type { BlobStoreAddress } from '../../../blobs/open-store.ts'
import type { Prints } from '../blocks/block-prints.ts'
import type { PriorRange } from '../blocks/prior-blocks.ts'
import { BLOCK_BYTES, type BlockHash, FRAME_BYTES } from '../format/format.ts'
import { SEAL_OVERHEAD } from '../format/seal.ts'
import type { Span } from '../format/spans.ts'
import type { ComparedTree } from '../tree/same-chunk.ts'
import type { NewFiles } from './new-files.ts'
import { type Address, type PackedAddresses, packAddresses, unpackAddresses } from './packed-addresses.ts'

export const SEGMENT_BYTES = 4 * 1024 * 1024
/** A segment that does not shrink, each of its frames encrypted. */
export const SLOT_BYTES = SEGMENT_BYTES + (SEGMENT_BYTES / BLOCK_BYTES + 2) * SEAL_OVERHEAD + FRAME_BYTES

export const ZERO_BLOCK = 1
export const NEW_BLOCK = 2
/** It is to be listed as a patch of what it was. */
export const PATCHED_BLOCK = 3

export interface WorkerData {
  blobs: BlobStoreAddress
  key: Uint8Array | null
  blockHash: BlockHash
  printKey: Uint8Array
  spanKey: Uint8Array
  nice: number
}

export type Job = LookJob | CompareJob | ReadJob | HashJob | DecodeJob

export interface LookJob {
  kind: 'look'
  /** Of a directory that stays open meanwhile. */
  address: string
  /** Bytes as latin1, with a slash between them: one text is cloned faster than many. */
  names: string
}

export interface CompareJob {
  kind: 'compare'
  tree: ComparedTree
  chunks: Uint8Array[]
}

export interface FileRange {
  /** -1 where it is to be opened by its address. */
  fd: number
  /** Of a name in a directory that stays open meanwhile. */
  address: Address
  from: number
  to: number
  size: bigint
  mtimeNs: bigint
  ctimeNs: bigint
  isPrinted: boolean
  /** Of the blocks between `from` and `to`, where they are known. */
  known: Prints | null
  /** The same, as the last backup lists them. */
  prior: PriorRange | null
}

/** As rows of numbers: cloning a small object for each would cost both threads more than the rest. */
export interface FileRanges {
  addresses: PackedAddresses
  numbers: Float64Array
  stats: BigInt64Array
  known: FileRange['known'][]
  prior: FileRange['prior'][]
}

const NUMBER = { fd: 0, from: 1, to: 2, isPrinted: 3, fields: 4 } as const
const STAT = { size: 0, mtimeNs: 1, ctimeNs: 2, fields: 3 } as const

export interface ReadJob {
  kind: 'read'
  files: FileRanges
  filter: SharedArrayBuffer | null
  /**
   * Memory to fill. Shared and used again: were it made or handed over for every job, the collector would take the
   * megabytes for garbage and run ten times a second.
   */
  slot: SharedArrayBuffer
}

export interface RangeRead {
  error: string | null
  /** The error is that it could not be opened. */
  isUnopened: boolean
  /** The file was not what the walk saw, or became something else while it was read. */
  changed: boolean
  length: number
  /** One for each stretch, where the file is printed and this processor makes prints faster than names. */
  prints: Uint8Array | null
}

/** No views of its own: of many small files they would be most of what there is to collect. */
export interface FileRead extends RangeRead {
  /** Of all files of its job. */
  ids: Uint8Array
  flags: Uint8Array
  /** Of the file. */
  firstBlock: number
  blockCount: number
  /** See `ReadResult`. */
  sectors: Uint16Array
}

export interface ReadResult {
  /** Of each file. */
  lengths: Float64Array
  changed: Uint8Array
  errors: { index: number; error: string; isUnopened: boolean }[]
  prints: { index: number; prints: Uint8Array }[]
  /** Of each file. Their ids and flags are in one array: memory of its own for each would cost more than what it holds. */
  blockCounts: number[]
  ids: Uint8Array
  /** One for each block: ZERO_BLOCK, NEW_BLOCK, PATCHED_BLOCK, or 0 for one that should be in the store. */
  flags: Uint8Array
  /** Which sectors of each block are patched. Where some may be, the ids of their patches follow those of all blocks. */
  sectors: Uint16Array
  /** Of the slot. */
  used: number
  /** Of what is in the slot. */
  table: Uint8Array
  /** Of the same; none where it is encrypted. */
  spans: Uint8Array
}

export interface HashJob {
  kind: 'hash'
  fd: number
  from: number
  size: number
  /** Of each block; zeros for one of zeros. */
  ids: Uint8Array
}

export interface HashResult {
  same: boolean
}

/** Made by `decodeJobs`, which says what is in a row. */
export interface DecodeJob {
  kind: 'decode'
  /** Also finds changed bits that change nothing. */
  isStrict: boolean
  packId: string
  /** Where the pack has the list of its spans, if blocks may be checked by those. */
  spans: Span | null
  /** By offset. */
  frames: Uint32Array
  /** Those of the first frame, then those of the next. */
  blocks: Float64Array
  /** Their ids, one after another. */
  ids: Uint8Array
  /** What blocks are the whole content of. */
  files: NewFiles | null
  /** What is wanted of the pack, where it was fetched from elsewhere; otherwise it is read from the disk. */
  fetched?: FetchedRange[]
}

/** A part of a pack, in memory that is shared: each job copies what it needs from it. */
export interface FetchedRange {
  /** In the pack. */
  offset: number
  length: number
  bytes: SharedArrayBuffer
  /** In `bytes`. */
  at: number
}

export interface DecodeResult {
  damaged: { what: string; blocks: Uint8Array[] }[]
  bytes: number
  /** A row for each file that was made. */
  made: Float64Array
}

export function packRanges(files: readonly FileRange[]): FileRanges {
  const numbers = new Float64Array(files.length * NUMBER.fields)
  const stats = new BigInt64Array(files.length * STAT.fields)
  let index = 0
  for (const file of files) {
    const number = index * NUMBER.fields
    numbers[number + NUMBER.fd] = file.fd
    numbers[number + NUMBER.from] = file.from
    numbers[number + NUMBER.to] = file.to
    numbers[number + NUMBER.isPrinted] = file.isPrinted ? 1 : 0
    const stat = index * STAT.fields
    stats[stat + STAT.size] = file.size
    stats[stat + STAT.mtimeNs] = file.mtimeNs
    stats[stat + STAT.ctimeNs] = file.ctimeNs
    index++
  }
  return {
    addresses: packAddresses(files.map(({ address }) => address)),
    numbers,
    stats,
    known: files.map(({ known }) => known),
    prior: files.map(({ prior }) => prior),
  }
}

export function unpackRanges({ addresses, numbers, stats, known, prior }: FileRanges): FileRange[] {
  return unpackAddresses(addresses).map((address, index) => {
    const number = index * NUMBER.fields
    const stat = index * STAT.fields
    return {
      fd: numbers[number + NUMBER.fd] ?? -1,
      address,
      from: numbers[number + NUMBER.from] ?? 0,
      to: numbers[number + NUMBER.to] ?? 0,
      size: stats[stat + STAT.size] ?? 0n,
      mtimeNs: stats[stat + STAT.mtimeNs] ?? 0n,
      ctimeNs: stats[stat + STAT.ctimeNs] ?? 0n,
      isPrinted: numbers[number + NUMBER.isPrinted] === 1,
      known: known[index] ?? null,
      prior: prior[index] ?? null,
    }
  })
}

export function packReads(reads: readonly RangeRead[]): Pick<ReadResult, 'lengths' | 'changed' | 'errors' | 'prints'> {
  const errors: ReadResult['errors'] = []
  const printed: ReadResult['prints'] = []
  for (const [index, { error, isUnopened, prints }] of reads.entries()) {
    if (error !== null) errors.push({ index, error, isUnopened })
    if (prints) printed.push({ index, prints })
  }
  const lengths = Float64Array.from(reads, ({ length }) => length)
  return { lengths, changed: Uint8Array.from(reads, ({ changed }) => Number(changed)), errors, prints: printed }
}

/** What became of each file. */
export function unpackReads(result: ReadResult): FileRead[] {
  const { lengths, changed, blockCounts, ids, flags, sectors, errors, prints } = result
  const reads: FileRead[] = []
  let firstBlock = 0
  for (const blockCount of blockCounts) {
    const index = reads.length
    reads.push({
      error: null,
      isUnopened: false,
      prints: null,
      changed: changed[index] === 1,
      length: lengths[index] ?? 0,
      ids,
      flags,
      sectors,
      firstBlock,
      blockCount,
    })
    firstBlock += blockCount
  }
  for (const { index, ...failure } of errors) Object.assign(reads[index] ?? {}, failure)
  for (const { index, prints: made } of prints) Object.assign(reads[index] ?? {}, { prints: made })
  return reads
}

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}

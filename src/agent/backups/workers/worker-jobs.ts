// The messages between the engine and its worker threads.
import type { BlobStoreAddress } from '../../../blobs/open-store.ts'
import type { Prints } from '../blocks/block-prints.ts'
import { BLOCK_BYTES, type BlockHash, FRAME_BYTES, ID_BYTES } from '../format/format.ts'
import { SEAL_OVERHEAD } from '../format/seal.ts'
import type { NewFiles } from './new-files.ts'

export const SEGMENT_BYTES = 4 * 1024 * 1024
/** A segment that does not shrink, each of its frames encrypted. */
export const SLOT_BYTES = SEGMENT_BYTES + (SEGMENT_BYTES / BLOCK_BYTES + 2) * SEAL_OVERHEAD + FRAME_BYTES

export const ZERO_BLOCK = 1
export const NEW_BLOCK = 2

export interface WorkerData {
  blobs: BlobStoreAddress
  key: Uint8Array | null
  blockHash: BlockHash
  printKey: Uint8Array
  nice: number
}

export type Job = ReadJob | HashJob | DecodeJob

export interface FileRange {
  fd: number
  from: number
  to: number
  size: bigint
  mtimeNs: bigint
  ctimeNs: bigint
  isPrinted: boolean
  /** Of the blocks between `from` and `to`, where they are known. */
  known: Prints | null
}

export interface ReadJob {
  kind: 'read'
  files: FileRange[]
  filter: SharedArrayBuffer | null
  /**
   * Memory to fill. Shared and used again: were it made or handed over for every job, the collector would take the
   * megabytes for garbage and run ten times a second.
   */
  slot: SharedArrayBuffer
}

export interface RangeRead {
  error: string | null
  /** The file was not what the walk saw, or became something else while it was read. */
  changed: boolean
  length: number
  /** One for each stretch, where the file is printed and this processor makes prints faster than names. */
  prints: Uint8Array | null
}

export interface FileRead extends RangeRead {
  ids: Uint8Array
  /** One for each block: ZERO_BLOCK, NEW_BLOCK, or 0 for one that should be in the store. */
  flags: Uint8Array
}

export interface ReadResult {
  reads: RangeRead[]
  /** Of each file. Their ids and flags are in one array: memory of its own for each would cost more than what it holds. */
  blockCounts: number[]
  ids: Uint8Array
  flags: Uint8Array
  /** Of the slot. */
  used: number
  /** Of what is in the slot. */
  table: Uint8Array
}

export interface HashJob {
  kind: 'hash'
  fd: number
  from: number
  size: number
  /** null for a block of zeros. */
  ids: (Uint8Array | null)[]
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

/** What became of each file. */
export function unpackReads({ reads, blockCounts, ids, flags }: ReadResult): FileRead[] {
  let at = 0
  return reads.map((read, index) => {
    const from = at
    at += blockCounts[index] ?? 0
    return { ...read, ids: ids.subarray(from * ID_BYTES, at * ID_BYTES), flags: flags.subarray(from, at) }
  })
}

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}

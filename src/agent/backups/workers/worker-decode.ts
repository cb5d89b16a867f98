// The writing side of a worker thread: fetches, decodes and checks frames, and writes their blocks into files. It works
// on descriptors, and makes files only in staging.
import type { DirectTarget } from '../../../blobs/direct-io.ts'
import { type BlobReader, type BlobStore, type ByteRange, isLost } from '../../../blobs/store.ts'
import { writeFully } from '../../../kit/files/write-fully.ts'
import { FRAME_BYTES, ID_BYTES, packBlob } from '../format/format.ts'
import type { FrameRow } from '../format/pack-table.ts'
import { sectorRuns } from '../format/patched.ts'
import { CODEC_ZSTD, type Sealer } from '../format/seal.ts'
import { decodeSpans, SPAN_BYTES, type Span, type SpanList } from '../format/spans.ts'
import { BLOCK, FRAME } from './decode-jobs.ts'
import { createFileMaker, type FileMaker, MADE } from './new-files.ts'
import { createRunWriter, type RunWriter } from './run-writer.ts'
import { type DecodeJob, type DecodeResult, errorCode, type FetchedRange } from './worker-jobs.ts'

/** Neighbouring frames are fetched together up to this size: one read from a disk, one request to an object store. */
const FETCH_BYTES = SPAN_BYTES
/** Of a span, the least that must be wanted: to go through the rest of it takes less than to name that (`npm run bench -- backups`). */
const SPAN_SHARE = 1 / 4

/** What one job after another uses: fresh memory for each would cost as much as reading into it. */
export interface Lane {
  fetched: Buffer
  decoded: Buffer
  runs: RunWriter
}

export interface Tools {
  sealer: Sealer
  blobs: BlobStore
}

export function createLane(): Lane {
  return {
    fetched: Buffer.allocUnsafeSlow(FETCH_BYTES),
    decoded: Buffer.allocUnsafeSlow(FRAME_BYTES),
    runs: createRunWriter(),
  }
}

/** Decodes frames, checks every block in them, and writes those that a file wants to where it wants them. */
export async function decodeFrames(tools: Tools, lane: Lane, job: DecodeJob): Promise<DecodeResult> {
  const made = new Float64Array((job.files?.times.length ?? 0) * MADE.fields)
  const makeFile = job.files ? createFileMaker(job.files) : null
  const result: Result = { damaged: [], bytes: 0, made, madeCount: 0, makeFile }
  const pack = job.fetched ? readerOf(job.fetched) : await openPack(tools.blobs, job.packId).catch(codeIfLost)
  try {
    await decodeGroups(tools.sealer, lane, job, pack, result)
  } finally {
    try {
      await lane.runs.finish()
    } finally {
      if (typeof pack !== 'string') await pack.close()
    }
  }
  const { damaged, bytes, madeCount } = result
  return { damaged, bytes, made: made.slice(0, madeCount * MADE.fields) }
}

interface Result extends DecodeResult {
  madeCount: number
  makeFile: FileMaker | null
}

/**
 * Frames that follow each other in the pack are in one of the ranges. What is in none is as if the pack had ended. What it
 * answers is the memory that it was fetched to, not a copy (`npm run bench -- offsite`).
 */
function readerOf(ranges: readonly FetchedRange[]): BlobReader {
  return {
    async get({ offset, length }) {
      const range = ranges.find((one) => one.offset <= offset && offset < one.offset + one.length)
      if (!range) return new Uint8Array()
      const from = range.at + offset - range.offset
      return Buffer.from(range.bytes, from, Math.min(length, range.at + range.length - from))
    },
    close: async () => {},
  }
}

/** Read by this thread where it can: another one would have to be waited for, behind what is being written. */
async function openPack(blobs: BlobStore, packId: string): Promise<BlobReader> {
  if (!blobs.openNow) return blobs.open(packBlob(packId))
  const pack = blobs.openNow(packBlob(packId))
  return { get: async (range, into) => pack.get(range, into), close: async () => pack[Symbol.dispose]() }
}

function codeIfLost(error: unknown): string {
  if (isLost(error)) return errorCode(error)
  throw error
}

async function decodeGroups(
  sealer: Sealer,
  lane: Lane,
  job: DecodeJob,
  pack: BlobReader | string,
  result: Result,
): Promise<void> {
  const { frames } = job
  const spans = typeof pack === 'string' ? undefined : await spansOf(sealer, job, pack)
  let block = 0
  for (let first = 0; first < frames.length; ) {
    const { end, offset, bytes, isSound } =
      typeof pack === 'string'
        ? { ...neighboursOf(frames, first), bytes: pack, isSound: false }
        : await fetchGroup(lane, frames, first, pack, spans)
    for (; first < end; first += FRAME.fields) {
      const frame = frameAt(job, first, block)
      const at = frame.offset - offset
      const checked =
        typeof bytes === 'string'
          ? bytes
          : checkFrame(sealer, lane, job, frame, bytes.subarray(at, at + frame.storedLength), isSound)
      if (typeof checked === 'string') result.damaged.push({ what: checked, blocks: idsOf(job, frame) })
      else await writeBlocks(lane.runs, job, frame, checked, result)
      result.bytes += frame.storedLength
      block = frame.blockEnd
    }
  }
}

interface DecodedFrame extends FrameRow {
  /** Its blocks, by their rows: from this one on, up to but without the other. */
  block: number
  blockEnd: number
}

function frameAt({ frames }: DecodeJob, row: number, block: number): DecodedFrame {
  return {
    offset: frames[row + FRAME.offset] ?? 0,
    storedLength: frames[row + FRAME.storedLength] ?? 0,
    rawLength: frames[row + FRAME.rawLength] ?? 0,
    codec: frames[row + FRAME.codec] ?? 0,
    crc: frames[row + FRAME.crc] ?? 0,
    block,
    blockEnd: block + (frames[row + FRAME.blockCount] ?? 0),
  }
}

/** Undefined where there are none, or they are not what was written: blocks are checked by their names then. */
async function spansOf(sealer: Sealer, { packId, spans }: DecodeJob, pack: BlobReader): Promise<SpanList | undefined> {
  // Who has no key could have put them there.
  if (sealer.isEncrypted) return undefined
  const stored = spans && (await pack.get(spans).catch(codeIfLost))
  return stored === null || typeof stored === 'string' ? undefined : decodeSpans(packId, stored)
}

interface Group extends ByteRange {
  /** Its frames: from the row that was asked for up to but without this one. */
  end: number
}

/** All of a span, where it is what was written and enough of it is wanted; else neighbours, each to be checked by itself. */
async function fetchGroup(
  lane: Lane,
  frames: Uint32Array,
  first: number,
  pack: BlobReader,
  spans: SpanList | undefined,
): Promise<Group & { bytes: Uint8Array | string; isSound: boolean }> {
  const span = spans?.at(frames[first + FRAME.offset] ?? 0)
  const end = span ? endWithin(frames, first, span) : first
  if (spans && span && end > first) {
    const bytes = await pack.get(span, lane.fetched).catch(codeIfLost)
    if (typeof bytes !== 'string' && spans.isSound(span, bytes)) return { ...span, end, bytes, isSound: true }
    // Once is enough: a disk may take its time to say that it cannot.
    spans.giveUp()
  }
  // Not beyond it: all of the next one is to be fetched together.
  const group = neighboursOf(frames, first, span && span.offset + span.length)
  return { ...group, bytes: await pack.get(group, lane.fetched).catch(codeIfLost), isSound: false }
}

/** Up to where frames are in the span; the first itself, where too little of it is wanted. */
function endWithin(frames: Uint32Array, first: number, span: Span): number {
  let wanted = 0
  let end = first
  for (; end < frames.length; end += FRAME.fields) {
    const stored = frames[end + FRAME.storedLength] ?? 0
    if ((frames[end + FRAME.offset] ?? 0) + stored > span.offset + span.length) break
    wanted += stored
  }
  return span.length <= FETCH_BYTES && wanted >= span.length * SPAN_SHARE ? end : first
}

/** The frame and those that follow it in the pack without a gap, as many as are fetched together. */
function neighboursOf(frames: Uint32Array, first: number, limit = Number.POSITIVE_INFINITY): Group {
  const offset = frames[first + FRAME.offset] ?? 0
  let length = frames[first + FRAME.storedLength] ?? 0
  let end = first + FRAME.fields
  for (; end < frames.length; end += FRAME.fields) {
    const stored = frames[end + FRAME.storedLength] ?? 0
    if (frames[end + FRAME.offset] !== offset + length || length + stored > FETCH_BYTES) break
    if (offset + length + stored > limit) break
    length += stored
  }
  return { end, offset, length }
}

const name = Buffer.alloc(ID_BYTES)

/** What the frame holds, or what is wrong with it. `isStored`: these bytes are known to be those that were written. */
function checkFrame(
  sealer: Sealer,
  lane: Lane,
  job: DecodeJob,
  frame: DecodedFrame,
  stored: Uint8Array,
  isStored: boolean,
): string | Uint8Array {
  const { blocks, ids, isStrict } = job
  let raw: Uint8Array
  try {
    if (stored.length !== frame.storedLength) return 'the pack ends too early'
    raw = sealer.decode(stored, frame, isStrict, roomFor(lane, job, frame))
  } catch (error) {
    return error instanceof Error ? error.message : 'cannot be decoded'
  }
  // What zstd makes of them is not them.
  if (isStored && (frame.codec & CODEC_ZSTD) === 0) return raw
  for (let block = frame.block; block < frame.blockEnd; block++) {
    const inner = blocks[block * BLOCK.fields + BLOCK.inner] ?? 0
    const length = blocks[block * BLOCK.fields + BLOCK.length] ?? 0
    sealer.nameTo(name, 0, partOf(raw, inner, length))
    if (name.compare(ids, block * ID_BYTES, (block + 1) * ID_BYTES) !== 0) return 'a block is not what its name says'
  }
  return raw
}

/** Mostly all of it, which saves making a view (`npm run bench -- backups`, `restore`). */
function partOf(raw: Uint8Array, inner: number, length: number): Uint8Array {
  return inner === 0 && length === raw.length ? raw : raw.subarray(inner, inner + length)
}

/** The very place from which the frame will be written, where all of it belongs together in one file. */
function roomFor({ runs, decoded }: Lane, { blocks }: DecodeJob, { block, blockEnd, rawLength }: DecodedFrame): Buffer {
  const first = block * BLOCK.fields
  const target = targetAt(blocks, first)
  const offset = blocks[first + BLOCK.offset] ?? 0
  if (target.directFd < 0) return decoded
  let inner = 0
  for (let at = first; at < blockEnd * BLOCK.fields; at += BLOCK.fields) {
    const isNext = blocks[at + BLOCK.inner] === inner && blocks[at + BLOCK.offset] === offset + inner
    if (!isNext || blocks[at + BLOCK.fd] !== target.fd) return decoded
    inner += blocks[at + BLOCK.length] ?? 0
  }
  return runs.room(target, offset, rawLength) ?? decoded
}

function targetAt(blocks: Float64Array, at: number): DirectTarget {
  return { fd: blocks[at + BLOCK.fd] ?? -1, directFd: blocks[at + BLOCK.directFd] ?? -1 }
}

async function writeBlocks(
  runs: RunWriter,
  { blocks }: DecodeJob,
  { block, blockEnd }: DecodedFrame,
  raw: Uint8Array,
  result: Result,
): Promise<void> {
  for (let at = block * BLOCK.fields; at < blockEnd * BLOCK.fields; at += BLOCK.fields) {
    const target = targetAt(blocks, at)
    const file = blocks[at + BLOCK.file] ?? -1
    const sectors = blocks[at + BLOCK.sectors] ?? 0
    const offset = blocks[at + BLOCK.offset] ?? 0
    const bytes = partOf(raw, blocks[at + BLOCK.inner] ?? 0, blocks[at + BLOCK.length] ?? 0)
    if (file >= 0) result.makeFile?.(file, bytes, result.made, result.madeCount++)
    if (target.fd < 0) continue
    const waits = sectors === 0 ? runs.add(target, bytes, offset) : writePatch(target, bytes, offset, sectors)
    if (waits) await waits
  }
}

/** Through the page cache: sectors that follow each other at once. */
function writePatch({ fd }: DirectTarget, bytes: Uint8Array, offset: number, sectors: number): undefined {
  for (const { from, start, length } of sectorRuns(sectors))
    writeFully(fd, bytes.subarray(from, from + length), offset + start)
}

/** Copies, since a message carries the whole of what an array is a view of. */
function idsOf({ ids }: DecodeJob, { block, blockEnd }: DecodedFrame): Uint8Array[] {
  const copies: Uint8Array[] = []
  for (let at = block; at < blockEnd; at++) copies.push(ids.slice(at * ID_BYTES, (at + 1) * ID_BYTES))
  return copies
}

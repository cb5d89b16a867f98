// A worker thread's reading: files are read, cut into blocks, named and compressed. It works on descriptors and never sees
// a path.
import { fstatSync, readSync } from 'node:fs'
import { asBuffer } from '../../kit/bytes.ts'
import { filterHas } from './block-filter.ts'
import { findPrint, PRINT_BYTES, type Printer } from './block-prints.ts'
import { BLOCK_BYTES, FRAME_BYTES, ID_BYTES } from './format.ts'
import { CODEC_ZSTD, type Sealer } from './seal.ts'
import { createTableBuilder, type FrameBlock, type TableBuilder } from './tables.ts'
import type { FileRange, FileRead, HashJob, HashResult, ReadJob, ReadResult } from './worker-jobs.ts'
import { errorCode, NEW_BLOCK, packReads, ZERO_BLOCK } from './worker-jobs.ts'

const zeros = Buffer.alloc(BLOCK_BYTES)
/** A thread reads one thing at a time. These stay in the processor's cache, where whatever looks at them is fast. */
const window = Buffer.allocUnsafeSlow(4 * BLOCK_BYTES)
const bundle = Buffer.allocUnsafeSlow(FRAME_BYTES)
/** Data that is left this large by zstd may as well be compressed already, but for zeros between its pieces. */
const DOUBTFUL = 0.75

/** What the window holds of a file. */
interface Ahead {
  file: FileRange
  from: number
  length: number
}

interface Output {
  slot: Buffer
  used: number
  table: TableBuilder
  bundle: Buffer
  bundled: number
  bundleBlocks: FrameBlock[]
  /** The last frame did not shrink much. */
  isDoubtful: boolean
  isKnown(id: Uint8Array): boolean
}

export interface Tools {
  sealer: Sealer
  print: Printer | null
}

export function readFiles(tools: Tools, job: ReadJob): ReadResult {
  const filter = job.filter && new Uint32Array(job.filter)
  const fresh = new Set<string>()
  const output: Output = {
    slot: Buffer.from(job.slot, 0, job.slot.byteLength),
    used: 0,
    table: createTableBuilder(),
    bundle,
    bundled: 0,
    bundleBlocks: [],
    isDoubtful: true,
    isKnown(id) {
      if (filter && filterHas(filter, id)) return true
      const text = Buffer.from(id.buffer, id.byteOffset, ID_BYTES).toString('latin1')
      if (fresh.has(text)) return true
      fresh.add(text)
      return false
    },
  }
  const files = job.files.map((file) => {
    try {
      return readOne(tools, output, file)
    } catch (error) {
      const nothing = { length: 0, ids: new Uint8Array(), flags: new Uint8Array(), prints: null }
      return { error: errorCode(error), changed: false, ...nothing }
    }
  })
  flushBundle(tools.sealer, output)
  return { ...packReads(files), slot: job.slot, used: output.used, table: output.table.take() }
}

function readOne({ sealer, print }: Tools, output: Output, file: FileRange): FileRead {
  const isAsExpected = () => {
    const now = fstatSync(file.fd, { bigint: true })
    return now.size === file.size && now.mtimeNs === file.mtimeNs && now.ctimeNs === file.ctimeNs
  }
  let changed = !isAsExpected()
  const blockCount = Math.ceil((file.to - file.from) / BLOCK_BYTES)
  const ids = Buffer.alloc(blockCount * ID_BYTES)
  const flags = new Uint8Array(blockCount)
  const prints = file.isPrinted && print ? new Uint8Array(blockCount * PRINT_BYTES) : null
  const ahead = { file, from: file.from, length: 0 }
  let at = file.from
  for (let index = 0; at < file.to; index++) {
    const wanted = Math.min(BLOCK_BYTES, file.to - at)
    const raw = readBlock(sealer, output, ahead, at, wanted)
    at += raw.length
    if (raw.length === 0) break
    if (raw.length === BLOCK_BYTES && raw.equals(zeros)) flags[index] = ZERO_BLOCK
    else {
      const made = prints && print ? print(raw) : null
      if (made) prints?.set(made, index * PRINT_BYTES)
      const knownAt = made && file.known ? findPrint(file.known, index, made) : -1
      if (file.known && knownAt >= 0) ids.set(file.known.ids.subarray(knownAt, knownAt + ID_BYTES), index * ID_BYTES)
      else flags[index] = storeBlock(sealer, output, raw, ids, index * ID_BYTES)
    }
    if (raw.length < wanted) break
  }
  if (at < file.to || !isAsExpected()) changed = true
  return { error: null, changed, length: at - file.from, ids, flags, prints }
}

const isSmall = (length: number) => length <= BLOCK_BYTES / 2

/** Where it can stay: a small one among those that are compressed together. Shorter than wanted at the file's end. */
function readBlock(sealer: Sealer, output: Output, ahead: Ahead, position: number, wanted: number): Buffer {
  const { fd, to } = ahead.file
  if (isSmall(wanted)) {
    if (output.bundled + wanted > FRAME_BYTES) flushBundle(sealer, output)
    const { bundle, bundled } = output
    return bundle.subarray(bundled, bundled + readFully(fd, bundle, bundled, wanted, position))
  }
  if (position >= ahead.from + ahead.length) {
    ahead.from = position
    ahead.length = readFully(fd, window, 0, Math.min(window.length, to - position), position)
  }
  const start = position - ahead.from
  return window.subarray(start, Math.min(start + wanted, ahead.length))
}

/** Writes the block's name to `ids`. Returns its flag. */
function storeBlock(sealer: Sealer, output: Output, raw: Buffer, ids: Buffer, idAt: number): number {
  const id = sealer.idOf(raw)
  ids.set(id, idAt)
  if (output.isKnown(id)) return 0
  const { length } = raw
  if (raw.buffer === output.bundle.buffer) {
    output.bundleBlocks.push({ id, inner: output.bundled, length })
    output.bundled += length
  } else addFrame(sealer, output, raw, [{ id, inner: 0, length }])
  return NEW_BLOCK
}

function flushBundle(sealer: Sealer, output: Output): void {
  if (output.bundled > 0) addFrame(sealer, output, output.bundle.subarray(0, output.bundled), output.bundleBlocks)
  output.bundled = 0
  output.bundleBlocks = []
}

function addFrame(sealer: Sealer, output: Output, raw: Uint8Array, blocks: FrameBlock[]): void {
  const { slot, used, table } = output
  const { bytes, codec, rawLength, crc } = sealer.encode(raw, output.isDoubtful, slot.subarray(used))
  output.isDoubtful = (codec & CODEC_ZSTD) === 0 || bytes.length > rawLength * DOUBTFUL
  // Not `set`, which takes shared memory byte by byte.
  if (bytes.buffer !== slot.buffer) asBuffer(bytes).copy(slot, used)
  output.used += bytes.length
  table.addFrame({ offset: used, storedLength: bytes.length, rawLength, codec, crc }, blocks.length)
  for (const { id, inner, length } of blocks) table.addBlock(id, inner, length)
}

function readFully(fd: number, target: Buffer, start: number, wanted: number, position: number): number {
  let done = 0
  while (done < wanted) {
    const got = readSync(fd, target, start + done, wanted - done, position + done)
    if (got === 0) break
    done += got
  }
  return done
}

/** The names that a file's blocks would have, to tell whether it is what a backup holds. */
export function hashFile(sealer: Sealer, job: HashJob): HashResult {
  const count = Math.ceil(job.size / BLOCK_BYTES)
  for (let index = 0; index < count; index++) {
    const wanted = Math.min(BLOCK_BYTES, job.size - index * BLOCK_BYTES)
    if (readFully(job.fd, window, 0, wanted, index * BLOCK_BYTES) !== wanted) return { same: false }
    const raw = window.subarray(0, wanted)
    const expected = job.ids[index]
    const isSame = expected
      ? sealer.idOf(raw).equals(expected)
      : raw.equals(wanted === BLOCK_BYTES ? zeros : zeros.subarray(0, wanted))
    if (!isSame) return { same: false }
  }
  return { same: true }
}

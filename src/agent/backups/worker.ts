// What runs in a worker thread: reading, hashing and compressing files; decoding, checking and writing them. It works on
// descriptors and on bytes that it is handed, and never sees a path.
import { fstatSync, readSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { openBlobStore } from '../../blobs/open.ts'
import { BlobMissing, type BlobStore } from '../../blobs/store.ts'
import { hasCode } from '../../kit/errno.ts'
import { filterHas } from './block-index.ts'
import { BLOCK_BYTES, FRAME_BYTES, ID_BYTES, packBlob } from './format.ts'
import type { UnplacedFrame } from './packs.ts'
import { createRunWriter, type RunWriter } from './run-writer.ts'
import { CODEC_ZSTD, createSealer, type Sealer } from './seal.ts'
import type {
  DecodeJob,
  DecodeResult,
  FileRead,
  HashJob,
  HashResult,
  Job,
  ReadJob,
  ReadResult,
  WantedFrame,
  WorkerData,
} from './worker-jobs.ts'
import { NEW_BLOCK, packFrames, packReads, ZERO_BLOCK } from './worker-jobs.ts'

const zeros = Buffer.alloc(BLOCK_BYTES)
/** Neighbouring frames are fetched together up to this size: one read from a disk, one request to an object store. */
const FETCH_BYTES = 2 * 1024 * 1024

/** Data that is left this large by zstd may as well be compressed already, but for zeros between its pieces. */
const DOUBTFUL = 0.75

/** What one job after another uses: fresh memory for each would cost as much as reading into it. */
interface Lane {
  fetched: Buffer
  decoded: Buffer
  runs: RunWriter
}

interface Tools {
  sealer: Sealer
  blobs: BlobStore
}

/** While one job waits for the disk, another has the processor. */
const LANES = 2

function createLane(): Lane {
  return {
    fetched: Buffer.allocUnsafeSlow(FETCH_BYTES),
    decoded: Buffer.allocUnsafeSlow(FRAME_BYTES),
    runs: createRunWriter(),
  }
}

interface Output {
  slot: Buffer
  used: number
  frames: UnplacedFrame[]
  bundle: Buffer
  bundled: number
  bundleBlocks: UnplacedFrame['blocks']
  /** The last frame did not shrink much. */
  isDoubtful: boolean
  isKnown(id: Uint8Array): boolean
}

function readFiles(sealer: Sealer, job: ReadJob): ReadResult {
  const filter = job.filter && new Uint32Array(job.filter)
  const fresh = new Set<string>()
  const output: Output = {
    slot: Buffer.from(job.slot),
    used: 0,
    frames: [],
    bundle: Buffer.allocUnsafe(FRAME_BYTES),
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
      return readOne(sealer, output, file)
    } catch (error) {
      return { error: errorCode(error), changed: false, length: 0, ids: new Uint8Array(), flags: new Uint8Array() }
    }
  })
  flushBundle(sealer, output)
  return { ...packReads(files), slot: job.slot, used: output.used, ...packFrames(output.frames) }
}

function readOne(sealer: Sealer, output: Output, file: ReadJob['files'][number]): FileRead {
  const isAsExpected = () => {
    const now = fstatSync(file.fd, { bigint: true })
    return now.size === file.size && now.mtimeNs === file.mtimeNs && now.ctimeNs === file.ctimeNs
  }
  let changed = !isAsExpected()
  const ids = Buffer.alloc(Math.ceil((file.to - file.from) / BLOCK_BYTES) * ID_BYTES)
  const flags = new Uint8Array(ids.length / ID_BYTES)
  let at = file.from
  for (let index = 0; at < file.to; index++) {
    const wanted = Math.min(BLOCK_BYTES, file.to - at)
    const got = storeBlock(sealer, output, file.fd, at, wanted, (id, flag) => {
      if (id) ids.set(id, index * ID_BYTES)
      flags[index] = flag
    })
    at += got
    if (got < wanted) break
  }
  if (at < file.to || !isAsExpected()) changed = true
  return { error: null, changed, length: at - file.from, ids, flags }
}

function storeBlock(
  sealer: Sealer,
  output: Output,
  fd: number,
  position: number,
  wanted: number,
  found: (id: Uint8Array | null, flag: number) => void,
): number {
  const isSmall = wanted <= BLOCK_BYTES / 2
  if (isSmall && output.bundled + wanted > FRAME_BYTES) flushBundle(sealer, output)
  const target = isSmall ? output.bundle : output.slot
  const start = isSmall ? output.bundled : output.used
  const length = readFully(fd, target, start, wanted, position)
  if (length === 0) return 0
  const raw = target.subarray(start, start + length)
  if (length === BLOCK_BYTES && raw.equals(zeros)) {
    found(null, ZERO_BLOCK)
    return length
  }
  const id = sealer.idOf(raw)
  const isKnown = output.isKnown(id)
  found(id, isKnown ? 0 : NEW_BLOCK)
  if (isKnown) return length
  if (isSmall) {
    output.bundleBlocks.push({ id, inner: start, length })
    output.bundled += length
  } else {
    addFrame(sealer, output, raw, [{ id, inner: 0, length }])
  }
  return length
}

function flushBundle(sealer: Sealer, output: Output): void {
  if (output.bundled > 0) addFrame(sealer, output, output.bundle.subarray(0, output.bundled), output.bundleBlocks)
  output.bundled = 0
  output.bundleBlocks = []
}

function addFrame(sealer: Sealer, output: Output, raw: Uint8Array, blocks: UnplacedFrame['blocks']): void {
  const { bytes, codec, rawLength, crc } = sealer.encode(raw, output.isDoubtful)
  output.isDoubtful = (codec & CODEC_ZSTD) === 0 || bytes.length > rawLength * DOUBTFUL
  // Bytes that did not shrink were read into their place already.
  const isInPlace = bytes.buffer === output.slot.buffer
  // Not `set`, which takes shared memory byte by byte.
  if (!isInPlace) Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).copy(output.slot, output.used)
  output.used += bytes.length
  output.frames.push({ storedLength: bytes.length, rawLength, codec, crc, blocks })
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
function hashFile(sealer: Sealer, job: HashJob): HashResult {
  const buffer = Buffer.allocUnsafe(BLOCK_BYTES)
  const count = Math.ceil(job.size / BLOCK_BYTES)
  for (let index = 0; index < count; index++) {
    const wanted = Math.min(BLOCK_BYTES, job.size - index * BLOCK_BYTES)
    if (readFully(job.fd, buffer, 0, wanted, index * BLOCK_BYTES) !== wanted) return { same: false }
    const raw = buffer.subarray(0, wanted)
    const expected = job.ids[index]
    const isSame = expected
      ? sealer.idOf(raw).equals(expected)
      : raw.equals(wanted === BLOCK_BYTES ? zeros : zeros.subarray(0, wanted))
    if (!isSame) return { same: false }
  }
  return { same: true }
}

/** Decodes frames, checks every block in them, and writes those that a file wants to where it wants them. */
async function decodeFrames(tools: Tools, lane: Lane, job: DecodeJob): Promise<DecodeResult> {
  const result: DecodeResult = { damaged: [], bytes: 0 }
  try {
    await decodeGroups(tools, lane, job, result)
  } finally {
    await lane.runs.finish()
  }
  return result
}

async function decodeGroups(tools: Tools, lane: Lane, job: DecodeJob, result: DecodeResult): Promise<void> {
  for (const group of groupNeighbours(job.frames)) {
    const first = group[0]
    const last = group.at(-1)
    if (!first || !last) continue
    const range = { offset: first.offset, length: last.offset + last.storedLength - first.offset }
    const fetched = await tools.blobs.get(packBlob(job.packId), range, lane.fetched).catch((error: unknown) => {
      // Anything else may pass, and says nothing about the block.
      if (error instanceof BlobMissing || hasCode(error, 'EIO')) return errorCode(error)
      throw error
    })
    for (const frame of group) {
      const at = frame.offset - range.offset
      const checked =
        typeof fetched === 'string'
          ? fetched
          : checkFrame(tools.sealer, lane, job.isStrict, frame, fetched.subarray(at, at + frame.storedLength))
      if (typeof checked === 'string') {
        const blocks = frame.blocks.map(({ id }) => Buffer.from(id))
        result.damaged.push({ frame: frame.frame, what: checked, blocks })
      } else {
        for (const { target, inner, length, offset } of frame.writes) {
          const waits = lane.runs.add(target, checked.subarray(inner, inner + length), offset)
          if (waits) await waits
        }
      }
      result.bytes += frame.storedLength
    }
  }
}

/** What the frame holds, or what is wrong with it. */
function checkFrame(
  sealer: Sealer,
  { decoded }: Lane,
  isStrict: boolean,
  frame: WantedFrame,
  stored: Uint8Array,
): string | Uint8Array {
  let raw: Uint8Array
  try {
    if (stored.length !== frame.storedLength) return 'the pack ends too early'
    raw = sealer.decode(stored, frame, isStrict, decoded)
  } catch (error) {
    return error instanceof Error ? error.message : 'cannot be decoded'
  }
  for (const { id, inner, length } of frame.blocks) {
    if (!sealer.idOf(raw.subarray(inner, inner + length)).equals(id)) return 'a block is not what its name says'
  }
  return raw
}

function groupNeighbours(frames: WantedFrame[]): WantedFrame[][] {
  const groups: WantedFrame[][] = []
  let size = 0
  for (const frame of frames) {
    const group = groups.at(-1)
    const before = group?.at(-1)
    const isNext = before !== undefined && before.offset + before.storedLength === frame.offset
    if (group && isNext && size + frame.storedLength <= FETCH_BYTES) {
      group.push(frame)
      size += frame.storedLength
    } else {
      groups.push([frame])
      size = frame.storedLength
    }
  }
  return groups
}

function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}

async function serve(port: NonNullable<typeof parentPort>, data: WorkerData): Promise<void> {
  // On Linux this is the calling thread alone. Block devices under BFQ derive the I/O priority from it.
  if (data.nice > 0) setPriority(0, data.nice)
  const sealer = createSealer(data.key, data.blockHash)
  const tools: Tools = { sealer, blobs: await openBlobStore(data.blobs, { clear: false }) }
  const lanes: Lane[] = []
  const waiting: { id: number; job: Job }[] = []
  let running = 0

  async function decode(job: DecodeJob): Promise<DecodeResult> {
    const lane = lanes.pop() ?? createLane()
    try {
      return await decodeFrames(tools, lane, job)
    } finally {
      lanes.push(lane)
    }
  }

  async function answer({ id, job }: { id: number; job: Job }): Promise<void> {
    try {
      const result =
        job.kind === 'read' ? readFiles(sealer, job) : job.kind === 'hash' ? hashFile(sealer, job) : await decode(job)
      port.postMessage({ id, result })
    } catch (error) {
      port.postMessage({ id, error: errorCode(error) })
    }
  }

  function next(): void {
    const message = running < LANES ? waiting.shift() : undefined
    if (!message) return
    running++
    void answer(message).finally(() => {
      running--
      next()
    })
  }

  port.on('message', (message) => {
    waiting.push(message)
    next()
  })
}

if (parentPort) await serve(parentPort, workerData as WorkerData)

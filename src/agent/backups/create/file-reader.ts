// Has files read by the worker threads: small ones many at a time, large ones in segments, in bounded memory. A file that
// changes while it is read is read again.
import { fdatasync, fstatSync } from 'node:fs'
import { promisify } from 'node:util'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import { createRateLimit } from '../../../kit/waiting/rate-limit.ts'
import { createWorkGroup } from '../../../kit/waiting/work-group.ts'
import { addressOf } from '../../files/sandbox/directory.ts'
import type { WalkEntry } from '../../files/sandbox/walk.ts'
import type { HoleBudget } from '../../files/space/hole-budget.ts'
import type { Prints } from '../blocks/block-prints.ts'
import type { PriorBlocks } from '../blocks/prior-blocks.ts'
import { BLOCK_BYTES, ID_BYTES } from '../format/format.ts'
import type { Repository } from '../store/repository.ts'
import { OPEN_FILE } from '../tree/unchanged.ts'
import type { Pool } from '../workers/pool.ts'
import { errorCode, packRanges, SEGMENT_BYTES, unpackReads } from '../workers/worker-jobs.ts'
import { createDirectoryHolds } from './directory-holds.ts'
import { NO_SEGMENTS, type OnRead, type OpenedFile, Part, type Source } from './file-part.ts'
import { joinedRead, joinReads, type ListedRead, listPatches, NOTHING_READ } from './joined-reads.ts'
import type { PackSink } from './pack-sink.ts'

const BATCH_BYTES = 1024 * 1024
const BATCH_FILES = 256
/** Once, and again up to three times. */
const ATTEMPTS_AT_MOST = 4
/** Instead of an error code: the file is not read, since nearly all of it is a hole. */
export const TOO_SPARSE = 'too sparse'

const fdatasyncAsync = promisify(fdatasync)

type Found = Pick<WalkEntry, 'stats' | 'seenAt'>

interface Reading {
  /** What the file was when it was last read, and in the last backup. */
  known?: Prints | undefined
  prior?: PriorBlocks | undefined
  /** Its pages are written to the disk first. */
  mustFlush?: boolean
}

export interface FileReader {
  /** Takes the descriptor over. `done` is called once, from `step` or `finish`. */
  add(descriptor: Descriptor, found: Found, reading: Reading, done: OnRead): void
  /** A small file, opened by whoever reads it. */
  addNamed(found: Found & Pick<WalkEntry, 'parent' | 'name'>, done: OnRead): void
  /** Whether to `step` before adding more. */
  isFull(): boolean
  /** Starts what it can and waits until something was read. */
  step(): Promise<void>
  finish(): Promise<void>
  /** Lets go of everything without telling anyone. */
  abandon(): Promise<void>
}

export function createFileReader(deps: {
  repository: Repository
  /** Of the server. */
  pool: Pool
  sink: PackSink
  signal: AbortSignal
  holes: HoleBudget
  bytesPerSecond: number | null
}): FileReader {
  const { repository, pool, sink, signal, holes } = deps
  const rate = createRateLimit(deps.bytesPerSecond)
  /** Not a Set, whose old tables would keep files alive that are done with (`npm run bench -- backups`, `small`). */
  const opened: OpenedFile[] = []
  const holds = createDirectoryHolds()
  const jobs: Part[][] = []
  /** Whose segments are made when they are needed: there may be millions. */
  const large: { file: OpenedFile; segment: number; count: number }[] = []
  const running = createWorkGroup(pool.width)
  let batch: Part[] = []
  let batchBytes = 0

  function flushBatch(): void {
    if (batch.length > 0) jobs.push(batch)
    batch = []
    batchBytes = 0
  }

  function enqueue(file: OpenedFile): void {
    if (!holes.take(file.stats)) {
      refuse(file, TOO_SPARSE)
      return
    }
    const size = Number(file.stats.size)
    const count = Math.max(1, Math.ceil(size / SEGMENT_BYTES))
    file.segments = count === 1 ? NO_SEGMENTS : new Array(count).fill(undefined)
    file.segmentsLeft = count
    if (count > 1) {
      large.push({ file, segment: 0, count })
      return
    }
    if (batchBytes + size > SEGMENT_BYTES) flushBatch()
    batch.push(new Part(file, 0, 0, size))
    batchBytes += size
    if (batchBytes >= BATCH_BYTES || batch.length >= BATCH_FILES) flushBatch()
  }

  function refuse(file: OpenedFile, error: string, isUnopened = false): void {
    release(file)
    file.done({ ...NOTHING_READ, error, isUnopened }, file)
  }

  /** The segments of a large file come after what is small and waits already. */
  function takeJob(): Part[] | undefined {
    const next = large[0]
    if (jobs.length > 0 || !next) return jobs.shift()
    const { file, segment } = next
    if (++next.segment === next.count) large.shift()
    const from = segment * SEGMENT_BYTES
    return [new Part(file, segment, from, Math.min(Number(file.stats.size), from + SEGMENT_BYTES))]
  }

  const segmentsWaiting = () => large.reduce((sum, { segment, count }) => sum + count - segment, 0)
  const isIdle = () => jobs.length === 0 && large.length === 0 && running.size === 0

  async function runJob(parts: Part[]): Promise<void> {
    let bytes = 0
    for (const { from, to } of parts) bytes += to - from
    await rate.take(bytes, signal)
    for (const { file } of parts) if (file.mustFlush) await flushOnce(file)
    const files = packRanges(parts)
    let reads = listPatches(await keep(await pool.read({ files, filter: repository.index.filter() })), parts)
    // The filter, a print or the last backup led to a block that is damaged, gone, or was never here.
    const nothing = parts.map(() => null)
    if (!areHeld(reads)) {
      const again = { ...packRanges(parts), known: nothing }
      reads = listPatches(await keep(await pool.read({ files: again, filter: null })), parts)
    }
    if (!areHeld(reads)) {
      reads = await keep(await pool.read({ files: { ...files, known: nothing, prior: nothing }, filter: null }))
      if (!areHeld(reads)) throw new Error('a block was read and neither stored nor found')
    }
    let index = 0
    for (const read of reads) {
      const part = parts[index++]
      if (part) finishPart(part, read)
    }
  }

  function flushOnce(file: OpenedFile): Promise<void> {
    file.flushing ??= flush(file)
    return file.flushing
  }

  /** Where that fails, the file counts as one whose times may hide writes. */
  async function flush(file: OpenedFile): Promise<void> {
    const { source } = file
    if (!('file' in source)) return
    file.isFlushed = await source.file.use(fdatasyncAsync).then(
      () => true,
      () => false,
    )
  }

  async function keep(result: Awaited<ReturnType<Pool['read']>>): Promise<ListedRead[]> {
    const { slot, used, table, spans } = result
    await sink.add(new Uint8Array(slot, 0, used), table, spans)
    pool.recycle(slot)
    return unpackReads(result)
  }

  /** What is new has just been stored. */
  function areHeld(reads: readonly ListedRead[]): boolean {
    for (const { length, ids, flags, firstBlock, patches } of reads) {
      if (patches && !arePatchesHeld(patches)) return false
      const end = firstBlock + Math.ceil(length / BLOCK_BYTES)
      for (let block = firstBlock; block < end; block++)
        if (flags[block] === 0 && !patches?.has(block - firstBlock) && !sink.holds(ids, block * ID_BYTES)) return false
    }
    return true
  }

  function arePatchesHeld(patches: NonNullable<ListedRead['patches']>): boolean {
    for (const { base, patch } of patches.values()) if (!sink.holds(base) || !sink.holds(patch)) return false
    return true
  }

  function finishPart({ file, segment }: Part, read: ListedRead): void {
    if (file.segments !== NO_SEGMENTS) file.segments[segment] = read
    if (--file.segmentsLeft > 0) return
    const outcome =
      file.segments === NO_SEGMENTS ? joinedRead(read) : joinReads(file.segments.filter((part) => part !== undefined))
    if (outcome.error === null && outcome.isTorn && file.attempts < ATTEMPTS_AT_MOST) {
      readAgain(file)
      return
    }
    release(file)
    file.done(outcome, file)
  }

  function readAgain(file: OpenedFile): void {
    let descriptor: Descriptor
    try {
      descriptor = openOf(file)
    } catch (error) {
      refuse(file, errorCode(error), true)
      return
    }
    file.attempts++
    file.seenAt = Date.now()
    file.stats = fstatSync(descriptor.fd, { bigint: true })
    enqueue(file)
  }

  function openOf(file: OpenedFile): Descriptor {
    const { source } = file
    if ('file' in source) return source.file
    const opened = openDescriptor(source.address, OPEN_FILE)
    file.source = { file: opened }
    source.hold[Symbol.dispose]()
    return opened
  }

  function removeOpened(file: OpenedFile): void {
    const last = opened.pop()
    if (!last || last === file) return
    opened[file.place] = last
    last.place = file.place
  }

  function release(file: OpenedFile): void {
    removeOpened(file)
    const { source } = file
    if ('file' in source) source.file[Symbol.dispose]()
    else source.hold[Symbol.dispose]()
  }

  function addFile(source: Source, found: Found, reading: Reading, done: OpenedFile['done']): void {
    const file: OpenedFile = {
      source,
      stats: found.stats,
      seenAt: found.seenAt,
      attempts: 1,
      isFlushed: false,
      flushing: undefined,
      mustFlush: reading.mustFlush ?? false,
      known: reading.known,
      prior: reading.prior,
      segments: NO_SEGMENTS,
      segmentsLeft: 0,
      place: opened.length,
      done,
    }
    opened.push(file)
    enqueue(file)
    startJobs()
  }

  function startJobs(): void {
    while (!running.isFull() && !running.hasFailed() && !signal.aborted) {
      const parts = takeJob()
      if (!parts) return
      running.start(runJob(parts))
    }
  }

  async function step(): Promise<void> {
    // Who steps waits for a file that may be in a batch that would never become full.
    if (isIdle()) flushBatch()
    startJobs()
    if (running.size > 0) await running.next()
    running.check()
    signal.throwIfAborted()
    startJobs()
  }

  return {
    add: (file, found, reading, done) => addFile({ file }, found, reading, done),
    addNamed(found, done) {
      const { parent, name } = found
      addFile({ address: addressOf(parent, name), hold: holds.hold(parent) }, found, {}, done)
    },
    isFull: () => jobs.length + segmentsWaiting() > 2 || opened.length >= repository.filesAtOnce,
    step,
    async finish() {
      for (;;) {
        flushBatch()
        if (isIdle()) break
        await step()
      }
      running.check()
    },
    async abandon() {
      await running.ended()
      for (const file of [...opened]) release(file)
    },
  }
}

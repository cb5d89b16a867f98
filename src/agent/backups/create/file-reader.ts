// Has files read by the worker threads: small ones many at a time, large ones in segments, in bounded memory. A file that
// changes while it is read is read again.
import { fstatSync } from 'node:fs'
import { type Descriptor, openDescriptor } from '../../../kit/descriptor.ts'
import { createRateLimit } from '../../../kit/rate-limit.ts'
import { createWorkGroup } from '../../../kit/work-group.ts'
import { addressOf } from '../../files/sandbox/directory.ts'
import type { EntryStats } from '../../files/sandbox/looked.ts'
import type { WalkEntry } from '../../files/sandbox/walk.ts'
import type { HoleBudget } from '../../files/space/hole-budget.ts'
import { PRINTED_FROM_BYTES, type Prints, printsBetween } from '../blocks/block-prints.ts'
import { BLOCK_BYTES, ID_BYTES } from '../format/format.ts'
import type { Repository } from '../store/repository.ts'
import { OPEN_FILE } from '../tree/unchanged.ts'
import type { Pool } from '../workers/pool.ts'
import {
  errorCode,
  type FileRange,
  type FileRead,
  packRanges,
  SEGMENT_BYTES,
  unpackReads,
} from '../workers/worker-jobs.ts'
import { createDirectoryHolds } from './directory-holds.ts'
import { type JoinedReads, joinReads } from './joined-reads.ts'
import type { PackSink } from './pack-sink.ts'

const BATCH_BYTES = 1024 * 1024
const BATCH_FILES = 256
/** Once, and again up to three times. */
const ATTEMPTS_AT_MOST = 4
/** Instead of an error code: the file is not read, since nearly all of it is a hole. */
export const TOO_SPARSE = 'too sparse'

export interface ReadOutcome extends JoinedReads {
  error: string | null
  /** The error is that it could not be opened. */
  isUnopened: boolean
  attempts: number
  /** It changed during the last attempt too. */
  isTorn: boolean
  stats: EntryStats
  /** When the stats were taken. */
  seenAt: number
}

/** What to read: an open file, or a name in a directory that is held open. Changed files are opened to be read again. */
type Source = { file: Descriptor } | { address: string | Buffer; hold: Disposable }

interface OpenedFile {
  source: Source
  stats: EntryStats
  seenAt: number
  attempts: number
  known: Prints | undefined
  segments: (FileRead | undefined)[]
  segmentsLeft: number
  done(outcome: ReadOutcome): void
}

interface Part {
  file: OpenedFile
  segment: number
  from: number
  to: number
}

type Found = Pick<WalkEntry, 'stats' | 'seenAt'>

export interface FileReader {
  /**
   * Takes the descriptor over. `known`: what the file was when it was last read. `done` is called once, from `step` or
   * `finish`.
   */
  add(descriptor: Descriptor, found: Found, known: Prints | undefined, done: (outcome: ReadOutcome) => void): void
  /** A small file, opened by whoever reads it. */
  addNamed(found: Found & Pick<WalkEntry, 'parent' | 'name'>, done: (outcome: ReadOutcome) => void): void
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
  const opened = new Set<OpenedFile>()
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
    file.segments = count === 1 ? [undefined] : new Array(count).fill(undefined)
    file.segmentsLeft = count
    if (count > 1) {
      large.push({ file, segment: 0, count })
      return
    }
    if (batchBytes + size > SEGMENT_BYTES) flushBatch()
    batch.push({ file, segment: 0, from: 0, to: size })
    batchBytes += size
    if (batchBytes >= BATCH_BYTES || batch.length >= BATCH_FILES) flushBatch()
  }

  function refuse(file: OpenedFile, error: string, isUnopened = false): void {
    release(file)
    const { attempts, stats, seenAt } = file
    const nothing = { sizeBytes: 0, content: new Uint8Array(), prints: undefined }
    file.done({ error, isUnopened, attempts, isTorn: false, stats, seenAt, ...nothing })
  }

  /** The segments of a large file come after what is small and waits already. */
  function takeJob(): Part[] | undefined {
    const next = large[0]
    if (jobs.length > 0 || !next) return jobs.shift()
    const { file, segment } = next
    if (++next.segment === next.count) large.shift()
    const from = segment * SEGMENT_BYTES
    return [{ file, segment, from, to: Math.min(Number(file.stats.size), from + SEGMENT_BYTES) }]
  }

  const segmentsWaiting = () => large.reduce((sum, { segment, count }) => sum + count - segment, 0)
  const isIdle = () => jobs.length === 0 && large.length === 0 && running.size === 0

  async function runJob(parts: Part[]): Promise<void> {
    const files = parts.map(rangeOf)
    await rate.take(
      files.reduce((sum, { from, to }) => sum + to - from, 0),
      signal,
    )
    let reads = await keep(await pool.read({ files: packRanges(files), filter: repository.index.filter() }))
    // The filter or a print led to a block that is damaged, gone, or was never here.
    if (!reads.every((read) => isHeld(read))) {
      const unknown = files.map((file) => ({ ...file, known: null }))
      reads = await keep(await pool.read({ files: packRanges(unknown), filter: null }))
      if (!reads.every((read) => isHeld(read))) throw new Error('a block was read and neither stored nor found')
    }
    for (const [index, part] of parts.entries()) {
      const read = reads[index]
      if (read) finishPart(part, read)
    }
  }

  function rangeOf({ file, from, to }: Part): FileRange {
    const { source, stats } = file
    const { size, mtimeNs, ctimeNs } = stats
    const isPrinted = size >= PRINTED_FROM_BYTES
    const known = file.known ? printsBetween(file.known, from, to) : null
    const [fd, address] = 'file' in source ? [source.file.fd, null] : [-1, source.address]
    return { fd, address, from, to, size, mtimeNs, ctimeNs, isPrinted, known }
  }

  async function keep(result: Awaited<ReturnType<Pool['read']>>): Promise<FileRead[]> {
    const { slot, used, table } = result
    await sink.add(new Uint8Array(slot, 0, used), table)
    pool.recycle(slot)
    return unpackReads(result)
  }

  /** What is new has just been stored. */
  function isHeld(read: FileRead): boolean {
    return read.flags
      .subarray(0, Math.ceil(read.length / BLOCK_BYTES))
      .every((flag, block) => flag !== 0 || sink.holds(read.ids, block * ID_BYTES))
  }

  function finishPart({ file, segment }: Part, read: FileRead): void {
    file.segments[segment] = read
    if (--file.segmentsLeft > 0) return
    const reads = file.segments.length === 1 ? [read] : file.segments.filter((part) => part !== undefined)
    const error = reads.find((part) => part.error !== null)?.error ?? null
    const isTorn = reads.some((part) => part.changed)
    if (error === null && isTorn && file.attempts < ATTEMPTS_AT_MOST) {
      readAgain(file)
      return
    }
    release(file)
    const { attempts, stats, seenAt } = file
    const isUnopened = reads.some((part) => part.isUnopened)
    file.done({ error, isUnopened, attempts, isTorn, stats, seenAt, ...joinReads(reads) })
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

  function release(file: OpenedFile): void {
    opened.delete(file)
    const { source } = file
    if ('file' in source) source.file[Symbol.dispose]()
    else source.hold[Symbol.dispose]()
  }

  function addFile(source: Source, found: Found, known: Prints | undefined, done: OpenedFile['done']): void {
    const { stats, seenAt } = found
    const file: OpenedFile = { source, stats, seenAt, attempts: 1, known, segments: [], segmentsLeft: 0, done }
    opened.add(file)
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
    add: (file, found, known, done) => addFile({ file }, found, known, done),
    addNamed(found, done) {
      const { parent, name } = found
      addFile({ address: addressOf(parent, name), hold: holds.hold(parent) }, found, undefined, done)
    },
    isFull: () => jobs.length + segmentsWaiting() > 2 || opened.size >= repository.filesAtOnce,
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
      for (const file of opened) release(file)
    },
  }
}

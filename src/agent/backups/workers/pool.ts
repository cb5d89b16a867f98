// The worker threads. They are started when there is work and let the process end when there is none. Servers take turns:
// one with much to do does not keep the others waiting.
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { alignedSharedBuffer } from '../../../blobs/direct-io.ts'
import { moduleBeside } from '../../../kit/module-beside.ts'
import type { Lookers } from '../../files/sandbox/look-ahead.ts'
import type { Verdict } from '../tree/same-chunk.ts'
import {
  type CompareJob,
  type DecodeJob,
  type DecodeResult,
  type HashJob,
  type HashResult,
  type LookJob,
  type ReadJob,
  type ReadResult,
  SLOT_BYTES,
  type WorkerData,
} from './worker-jobs.ts'

/** Each thread has its next job at hand when it is done with one. */
const JOBS_A_THREAD = 2
const SLOTS_KEPT = 8
/** A thread makes little that lives long; left alone it would hold several times as much before looking. */
const YOUNG_MB = 8

export interface Pool {
  /** How many jobs keep every thread busy; whoever starts more only fills memory. */
  readonly width: number
  /** Has every thread started by the time there is work for it. */
  prepare(): void
  read(job: Omit<ReadJob, 'kind' | 'slot'>): Promise<ReadResult & { slot: SharedArrayBuffer }>
  /** For `createLookAhead`. */
  lookers: Lookers
  compare(job: Omit<CompareJob, 'kind'>): Promise<Verdict[]>
  hash(job: Omit<HashJob, 'kind'>): Promise<HashResult>
  decode(job: Omit<DecodeJob, 'kind'>): Promise<DecodeResult>
  /** Gives the memory of a read back once its bytes are no longer needed. */
  recycle(slot: SharedArrayBuffer): void
  /** The same threads; jobs that are given here take turns with those of other owners. */
  of(owner: string): Pool
  close(): Promise<void>
}

type QueuedJob = LookJob | CompareJob | Omit<ReadJob, 'slot'> | HashJob | DecodeJob

interface Waiting {
  job: QueuedJob
  /** What a read fills: shared memory, so that its bytes are never copied (`npm run bench -- backups`, `first`). */
  slot?: SharedArrayBuffer
  resolve(value: unknown): void
  reject(error: unknown): void
}

const isLook = ({ kind }: QueuedJob) => kind === 'look' || kind === 'compare'

interface Thread {
  worker: Worker
  running: Map<number, Waiting>
}

export function createPool(data: WorkerData, threads = availableParallelism()): Pool {
  const pool: Thread[] = []
  /** By owner; the first is whose turn it is. */
  const queues = new Map<string, Waiting[]>()
  const slots: SharedArrayBuffer[] = []
  let lastId = 0
  let isClosed = false

  function start(): Thread {
    const worker = new Worker(moduleBeside(import.meta.url, 'worker'), {
      workerData: data,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    })
    const thread: Thread = { worker, running: new Map() }
    worker.unref()
    worker.on('message', ({ id, result, error }) => {
      const waiting = thread.running.get(id)
      thread.running.delete(id)
      if (thread.running.size === 0) worker.unref()
      if (error !== undefined) waiting?.reject(Object.assign(new Error(`a worker failed: ${error}`), { code: error }))
      else waiting?.resolve(waiting.slot ? { ...result, slot: waiting.slot } : result)
      dispatch()
    })
    let reason: unknown
    worker.on('error', (error) => {
      reason = error
    })
    // Not before: until it has ended, it may use what its jobs were given.
    worker.on('exit', () => {
      pool.splice(pool.indexOf(thread), 1)
      for (const waiting of thread.running.values()) waiting.reject(reason ?? new Error('a worker thread ended'))
      thread.running.clear()
      if (!isClosed) dispatch()
    })
    pool.push(thread)
    return thread
  }

  function takeSlot(): SharedArrayBuffer {
    return slots.pop() ?? alignedSharedBuffer(SLOT_BYTES)
  }

  function takeNext(): Waiting | undefined {
    for (const [owner, waiting] of queues) {
      queues.delete(owner)
      const next = waiting.shift()
      if (waiting.length > 0) queues.set(owner, waiting)
      return next
    }
    return undefined
  }

  function dispatch(): void {
    while (queues.size > 0) {
      let thread = pool.reduce<Thread | undefined>(
        (least, other) => (least && least.running.size <= other.running.size ? least : other),
        undefined,
      )
      if (pool.length < threads && (!thread || thread.running.size > 0)) thread = start()
      if (!thread || thread.running.size >= JOBS_A_THREAD) return
      const next = takeNext()
      if (!next) return
      const id = ++lastId
      thread.running.set(id, next)
      thread.worker.ref()
      if (next.job.kind === 'read') next.slot = takeSlot()
      thread.worker.postMessage({ id, job: next.slot ? { ...next.job, slot: next.slot } : next.job })
    }
  }

  function run<T>(owner: string, job: QueuedJob): Promise<T> {
    if (isClosed) return Promise.reject(new Error('the worker threads are closed'))
    return new Promise((resolve, reject) => {
      const waiting = queues.get(owner) ?? []
      queues.set(owner, waiting)
      const next = { job, resolve: resolve as (value: unknown) => void, reject }
      // What gives the other jobs waits for these, and for the first of them first.
      if (isLook(job)) waiting.splice(waiting.findLastIndex((other) => isLook(other.job)) + 1, 0, next)
      else waiting.push(next)
      dispatch()
    })
  }

  const shareOf = (owner: string): Pool => ({
    width: threads * JOBS_A_THREAD + 1,
    prepare() {
      while (!isClosed && pool.length < threads) start()
    },
    read: (job) => run(owner, { kind: 'read', ...job }),
    lookers: {
      areStarted: () => pool.length > 0,
      look: (address, names) => run(owner, { kind: 'look', address, names: names.join('/') }),
    },
    compare: (job) => run(owner, { kind: 'compare', ...job }),
    hash: (job) => run(owner, { kind: 'hash', ...job }),
    decode: (job) => run(owner, { kind: 'decode', ...job }),
    recycle(slot) {
      if (slots.length < SLOTS_KEPT) slots.push(slot)
    },
    of: shareOf,
    async close() {
      isClosed = true
      const waiting = [...queues.values()].flat()
      queues.clear()
      for (const { reject } of waiting) reject(new Error('the worker threads are closed'))
      await Promise.all([...pool].map((thread) => thread.worker.terminate()))
    },
  })
  return shareOf('')
}

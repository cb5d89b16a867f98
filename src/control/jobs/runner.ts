// Long work, safe across crashes. A job is a row before it runs: work under way when the process died goes back into
// the queue at the next start, so handlers must be idempotent; for jobs that crash the process, see crashes.ts.
import type { Logger } from 'pino'
import { fail } from '../../contract/errors.ts'
import { UNFINISHED_JOBS_MAX, UNFINISHED_JOBS_MAX_BYTES } from '../../contract/fixed-limits.ts'
import { newId } from '../../kit/ids.ts'
import type { Changes } from '../db/row-changes.ts'
import type { Db, JobRow, Trx } from '../db/tables.ts'
import { onCommit } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { type Cancellation, createCancellation } from './cancellation.ts'
import { isOnLastStart, takeUpCrashed } from './crashes.ts'
import { type Attempt, createExecution, STOPPING } from './execution.ts'
import type { JobHandler } from './handler.ts'
import { createQueue, LEASE_MS } from './queue.ts'
import * as store from './store.ts'
import { createWakeUps } from './wake-ups.ts'

export { backOffMs } from './back-off.ts'
export { type BadEnd, factsOf, type JobContext, type JobFacts, type JobHandler } from './handler.ts'

export interface NewJob {
  kind: string
  serverId: string
  input: object
  replaces?: string | null
  /** Not before this much time has passed. */
  delayMs?: number
}

export interface Jobs extends Cancellation {
  register<Input>(kind: string, handler: JobHandler<Input>): void
  /** `replaces`: the id of a job that this one makes needless; it is dropped if it is still in the queue. */
  enqueue(trx: Trx, actor: Actor, job: NewJob): Promise<JobRow>
  /** Throws `server_busy` where a server has as many unfinished jobs as it may have. The server is locked. */
  requireRoom(trx: Trx, serverId: string, input?: object): Promise<void>
  /** Whether the job is still at it; one that waits for its next attempt makes it at once. */
  hasten(trx: Trx, jobId: string): Promise<boolean>
  start(): Promise<void>
  /** Lets what runs go back into the queue, and waits until it has. */
  stop(): Promise<void>
  purge(olderThan: number): Promise<void>
}

interface Running extends Attempt {
  done: Promise<void>
}

const RENEW_MS = 10_000

export function createJobs(deps: {
  db: Db
  /** Told of a job, by its id, when it begins, gets on and ends. */
  changes: Changes
  clock: { now(): number }
  log: Logger
}): Jobs {
  const { db, changes, clock, log } = deps
  const owner = newId('req')
  const handlers = new Map<string, JobHandler>()
  const running = new Map<string, Running>()
  const busyServers = (kind: string) =>
    new Set([...running.values()].filter(({ row }) => row.kind === kind).map(({ row }) => row.server_id))
  const isLastStartRunning = () => running.values().some(({ row }) => isOnLastStart(row))
  const queue = createQueue({ db, clock, owner, changes, handlers, busyServers, isLastStartRunning, begin })
  const execute = createExecution(deps)
  const { wake, ...looking } = createWakeUps({ db, clock, log, queue })
  let renewal: NodeJS.Timeout | undefined

  function begin(row: JobRow, handler: JobHandler): void {
    const entry: Running = { row, abort: new AbortController(), done: Promise.resolve() }
    running.set(row.id, entry)
    entry.done = execute(entry, handler).finally(() => {
      running.delete(row.id)
      changes.tell(row.id)
      wake(isOnLastStart(row) ? undefined : row.kind)
    })
  }

  function renewLeases(): void {
    const renew = async () => {
      await store.renewLeases(db, owner, [...running.keys()], clock.now() + LEASE_MS)
      await store.requeueOrphans(db, clock.now())
    }
    renew().then(
      () => wake(),
      (error: unknown) => log.error({ err: error }, 'leases could not be renewed'),
    )
  }

  const abort = (jobId: string) => running.get(jobId)?.abort.abort()
  const { cancel, whenEnded, endAllOf } = createCancellation({ db, changes, clock, handlers, abort, wake })

  return {
    register: (kind, handler) => void handlers.set(kind, handler as JobHandler),

    async enqueue(trx, actor, { kind, serverId, input, replaces, delayMs = 0 }) {
      const now = clock.now()
      if (replaces && (await store.dropQueued(trx, replaces))) changes.tellAfter(trx, replaces)
      const row = newJobRow(actor, { kind, serverId, input }, now, now + delayMs)
      await store.insertJob(trx, row)
      onCommit(trx, () => wake(kind))
      return row
    },

    async requireRoom(trx, serverId, input = {}) {
      const { count, bytes } = await store.unfinishedOf(trx, serverId)
      const isFull = bytes + Buffer.byteLength(JSON.stringify(input)) > UNFINISHED_JOBS_MAX_BYTES
      if (isFull || count >= UNFINISHED_JOBS_MAX)
        throw fail(
          'server_busy',
          'The server has reached its limit of waiting jobs. Try again when some have finished.',
        )
    },

    async hasten(trx, jobId) {
      const job = await store.jobStatus(trx, jobId)
      if (job?.status === 'running') {
        onCommit(trx, () => {
          const entry = running.get(jobId)
          if (entry) entry.hastened = true
        })
        return true
      }
      if (job?.status !== 'queued') return false
      await store.makeDue(trx, jobId, clock.now())
      onCommit(trx, wake)
      return true
    },

    cancel,
    whenEnded,
    endAllOf,

    async start() {
      looking.start()
      await takeUpCrashed(deps, handlers)
      renewal = setInterval(renewLeases, RENEW_MS).unref()
      wake()
    },

    async stop() {
      clearInterval(renewal)
      await looking.stop()
      for (const { abort } of running.values()) abort.abort(STOPPING)
      await Promise.all([...running.values()].map(({ done }) => done))
    },

    purge: (olderThan) => store.purgeFinished(db, olderThan),
  }
}

function newJobRow(
  actor: Actor,
  { kind, serverId, input }: Pick<NewJob, 'kind' | 'serverId' | 'input'>,
  now: number,
  dueAt: number,
): JobRow {
  const { remember: _, ...asked } = actor
  return {
    id: newId('job', now),
    kind,
    server_id: serverId,
    status: 'queued',
    cancel: 0,
    input: JSON.stringify({ actor: { ...asked, servers: '*' }, input }),
    progress: JSON.stringify(store.NO_PROGRESS),
    result: null,
    error: null,
    attempts: 0,
    crashes: 0,
    due_at: dueAt,
    owner: null,
    lease_until: null,
    created_at: now,
    started_at: null,
    finished_at: null,
  }
}

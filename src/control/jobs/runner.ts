// Long work, safe across crashes. A job is a row before it is work: what was under way when the process died is put
// back into the queue at the next start, so a handler must be safe to repeat; what the process died of, see crashes.ts.
import type { Logger } from 'pino'
import { fail, isFailure } from '../../contract/errors.ts'
import { UNFINISHED_JOBS_MAX, UNFINISHED_JOBS_MAX_BYTES } from '../../contract/limits.ts'
import { newId } from '../../kit/ids.ts'
import type { Changes } from '../db/changes.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Db, JobRow, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { isOnLastStart, takeUpCrashed } from './crashes.ts'
import { type Attempt, createExecution, STOPPING } from './execution.ts'
import { factsOf, type JobHandler } from './handler.ts'
import { createQueue, LEASE_MS } from './queue.ts'
import * as store from './store.ts'

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

export interface Jobs {
  register<Input>(kind: string, handler: JobHandler<Input>): void
  /** `replaces`: the id of a job that this one makes needless; it is dropped if it is still in the queue. */
  enqueue(trx: Trx, actor: Actor, job: NewJob): Promise<JobRow>
  /** Throws `server_busy` where a server has as many unfinished jobs as it may have. The server is locked. */
  requireRoom(trx: Trx, serverId: string, input?: object): Promise<void>
  /** Whether the job is still at it; one that waits for its next attempt makes it at once. */
  hasten(trx: Trx, jobId: string): Promise<boolean>
  /** Ends a queued job at once and asks a running one to stop. Throws for one that has ended or cannot be cancelled. The server is locked. */
  cancel(trx: Trx, row: JobRow): Promise<void>
  /** Resolves when the job has ended, by this process, or the time is over. */
  whenEnded(jobId: string, waitMs: number): Promise<void>
  /** Cancels what can be cancelled of a server and waits for its end. Throws `server_busy` if it has not ended by then. */
  endAllOf(serverId: string, waitMs: number): Promise<void>
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
  const queue = createQueue({ db, owner, changes, handlers, busyServers, isLastStartRunning, begin })
  const execute = createExecution(deps)
  let stopped = true
  let looking: Promise<void> = Promise.resolve()
  let isAboutToLook = false
  let timer: NodeJS.Timeout | undefined
  let renewal: NodeJS.Timeout | undefined

  /** Something may run now: of this kind, or of any. */
  function wake(kind?: string): void {
    queue.mark(kind)
    if (isAboutToLook) return
    isAboutToLook = true
    looking = looking.then(look).catch((error: unknown) => {
      log.error({ err: error }, 'jobs could not be begun')
      schedule(clock.now() + 1000)
    })
  }

  function schedule(dueAt: number | null): void {
    clearTimeout(timer)
    if (stopped || dueAt === null) return
    timer = setTimeout(wake, Math.min(Math.max(dueAt - clock.now(), 5), 60_000)).unref()
  }

  async function look(): Promise<void> {
    isAboutToLook = false
    if (stopped) return
    const now = clock.now()
    await queue.claimDue(now)
    // What is due and has to wait is looked at again when something of its kind ends.
    schedule(await store.nextDueAt(db, now))
  }

  function begin(row: JobRow, handler: JobHandler): void {
    const entry: Running = { row, abort: new AbortController(), done: Promise.resolve() }
    running.set(row.id, entry)
    entry.done = execute(entry, handler).finally(() => {
      running.delete(row.id)
      changes.tell(row.id)
      wake(isOnLastStart(row) ? undefined : row.kind)
    })
  }

  const cancel: Jobs['cancel'] = async (trx, row) => {
    const handler = handlers.get(row.kind)
    if (row.status !== 'queued' && row.status !== 'running') throw finished()
    if (!handler?.cancellable) throw fail('server_busy', 'This work cannot be cancelled once it has been asked for.')
    await handler.checkCancel?.(trx, factsOf(row))
    if (handler.settlesCancel && row.status === 'queued' && row.attempts > 0 && (await store.askQueued(trx, row.id)))
      return onCommit(trx, () => wake(row.kind))
    // The row may have been claimed, or have ended, since it was read: only the update itself can tell.
    if (await store.cancelQueued(trx, row.id, clock.now())) {
      await handler.onEnd?.(trx, factsOf(row), { status: 'cancelled' })
      changes.tellAfter(trx, row.id)
      return
    }
    if (!(await store.askToCancel(trx, row.id))) throw finished()
    onCommit(trx, () => running.get(row.id)?.abort.abort())
  }

  const whenEnded: Jobs['whenEnded'] = async (jobId, waitMs) => {
    using changed = changes.watch(jobId)
    const deadline = performance.now() + waitMs
    do {
      const { status } = (await store.jobStatus(db, jobId)) ?? { status: 'completed' }
      if (status !== 'queued' && status !== 'running') return
    } while (await changed.wait(Math.max(0, deadline - performance.now())))
  }

  return {
    register: (kind, handler) => void handlers.set(kind, handler as JobHandler),

    async enqueue(trx, actor, { kind, serverId, input, replaces, delayMs = 0 }) {
      const now = clock.now()
      if (replaces && (await store.dropQueued(trx, replaces))) changes.tellAfter(trx, replaces)
      const { remember: _, ...asked } = actor
      const row: JobRow = {
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
        due_at: now + delayMs,
        owner: null,
        lease_until: null,
        created_at: now,
        started_at: null,
        finished_at: null,
      }
      await store.insertJob(trx, row)
      onCommit(trx, () => wake(kind))
      return row
    },

    async requireRoom(trx, serverId, input = {}) {
      const { count, bytes } = await store.unfinishedOf(trx, serverId)
      const isFull = bytes + Buffer.byteLength(JSON.stringify(input)) > UNFINISHED_JOBS_MAX_BYTES
      if (isFull || count >= UNFINISHED_JOBS_MAX)
        throw fail('server_busy', 'The server has as many jobs waiting as it may have. Try again when some have ended.')
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

    async endAllOf(serverId, waitMs) {
      const active = async () =>
        (await store.activeJobsOf(db, serverId)).filter(({ kind }) => handlers.get(kind)?.cancellable)
      const rows = await active()
      for (const row of rows) {
        await transact(db, {}, async (trx) => {
          await lockServer(trx, serverId)
          await cancel(trx, row)
        }).catch((error: unknown) => {
          if (!isFailure(error, 'job_finished')) throw error
        })
      }
      for (const { id } of rows) await whenEnded(id, waitMs)
      if ((await active()).length > 0) throw fail('server_busy', 'Work on the server has not ended yet.')
    },

    async start() {
      stopped = false
      await takeUpCrashed(deps, handlers)
      renewal = setInterval(() => {
        const renew = async () => {
          await store.renewLeases(db, owner, [...running.keys()], clock.now() + LEASE_MS)
          await store.requeueOrphans(db, clock.now())
        }
        renew().then(
          () => wake(),
          (error: unknown) => log.error({ err: error }, 'leases could not be renewed'),
        )
      }, RENEW_MS).unref()
      wake()
    },

    async stop() {
      stopped = true
      clearTimeout(timer)
      clearInterval(renewal)
      await looking
      for (const { abort } of running.values()) abort.abort(STOPPING)
      await Promise.all([...running.values()].map(({ done }) => done))
    },

    purge: (olderThan) => store.purgeFinished(db, olderThan),
  }
}

const finished = () => fail('job_finished', 'The job has finished already.')

// Long work, safe across crashes. A job is a row before it is work: what was under way when the process died is put
// back into the queue at the next start, so a handler must be safe to repeat.
import type { Logger } from 'pino'
import { fail, isFailure } from '../../contract/errors.ts'
import type { Progress, WorkError } from '../../contract/jobs.ts'
import { toFailure } from '../../http/problem.ts'
import { newId } from '../../kit/ids.ts'
import type { Changes } from '../db/changes.ts'
import type { Db, JobRow, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import * as store from './store.ts'

export interface JobFacts<Input> {
  jobId: string
  serverId: string
  input: Input
  /** Who asked for it, for the entries that it writes. */
  actor: Actor
}

export interface JobContext<Input> extends JobFacts<Input> {
  attempt: number
  /** Aborted when somebody cancels the job, and when the service stops. */
  signal: AbortSignal
  report(progress: Progress): void
  /** Ends the job in the transaction of the change that ends it. Without it, the job ends when the handler returns. */
  complete(trx: Trx, result?: unknown): Promise<void>
}

export interface BadEnd {
  status: 'failed' | 'cancelled'
  error?: WorkError
}

export interface JobHandler<Input = unknown> {
  /** In the transaction that takes it out of the queue: what else has to say that it runs now. */
  onBegin?(trx: Trx, job: JobFacts<Input>): Promise<void>
  run(context: JobContext<Input>): Promise<unknown>
  /** How long to wait before the next attempt after this error; null to give up. Gives up unless told. */
  retryAfterMs?(error: unknown, attempt: number): number | null
  /** In the transaction that makes the end known: what else has to be written when it failed or was cancelled. */
  onEnd?(trx: Trx, job: JobFacts<Input>, end: BadEnd): Promise<void>
  cancellable: boolean
  /** Throws if this one may not be cancelled. Asked in the transaction of the cancelling. */
  checkCancel?(trx: Trx, job: JobFacts<Input>): Promise<void>
  /** How many of this kind may run at once; one of a kind for one server in any case. */
  atOnce: number
}

export interface NewJob {
  kind: string
  serverId: string
  input: object
  replaces?: string | null
  /** Not before so long. */
  delayMs?: number
}

export interface Jobs {
  register<Input>(kind: string, handler: JobHandler<Input>): void
  /** `replaces`: the id of a job that this one makes needless; it is dropped if it is still in the queue. */
  enqueue(trx: Trx, actor: Actor, job: NewJob): Promise<JobRow>
  /** Whether the job is still at it; one that waits for its next attempt makes it at once. */
  hasten(trx: Trx, jobId: string): Promise<boolean>
  /** Ends a queued job at once and asks a running one to stop. Throws for one that has ended or cannot be cancelled. */
  cancel(trx: Trx, row: JobRow): Promise<void>
  /** Resolves when the job has ended, by this process, or the time is over. */
  whenEnded(jobId: string, waitMs: number): Promise<void>
  start(): Promise<void>
  /** Lets what runs go back into the queue, and waits until it has. */
  stop(): Promise<void>
  purge(olderThan: number): Promise<void>
}

interface Running {
  row: JobRow
  abort: AbortController
  done: Promise<void>
  /** Somebody asked for it meanwhile: should this attempt fail, the next follows at once. */
  hastened?: boolean
}

const LEASE_MS = 30_000
const RENEW_MS = 10_000
const PROGRESS_EVERY_MS = 500
const LOOK_AT_MOST = 200
const STOPPING = Symbol('stopping')

export function createJobs(deps: {
  db: Db
  /** Told of a job, by its id, when it begins, gets on and ends. */
  changes: Changes
  clock: { now(): number }
  log: Logger
  /** Whether every job that is marked as running at the start is surely dead: nobody else uses the database. */
  alone: boolean
}): Jobs {
  const { db, changes, clock, log } = deps
  const owner = newId('req')
  const handlers = new Map<string, JobHandler>()
  const running = new Map<string, Running>()
  const turns = new Map<string, number>()
  let turn = 0
  let stopped = true
  let looking: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  let renewal: NodeJS.Timeout | undefined

  const wake = () => {
    looking = looking.then(look).catch((error: unknown) => {
      log.error({ err: error }, 'jobs could not be read')
      schedule(clock.now() + 1000)
    })
  }

  function schedule(dueAt: number | null): void {
    clearTimeout(timer)
    if (!stopped && dueAt !== null) timer = setTimeout(wake, Math.min(Math.max(dueAt - clock.now(), 5), 60_000)).unref()
  }

  async function look(): Promise<void> {
    if (stopped) return
    const now = clock.now()
    const due = await store.dueJobs(db, now, LOOK_AT_MOST)
    for (const row of due.sort((a, b) => turnOf(a) - turnOf(b))) {
      const handler = handlers.get(row.kind)
      if (!handler || isBlocked(row, handler)) continue
      if (!(await claim(row, handler))) continue
      turns.set(turnKey(row), ++turn)
      begin({ ...row, attempts: row.attempts + 1 }, handler)
    }
    // What is due and has to wait is looked at again when something ends.
    schedule(await store.nextDueAt(db, now))
  }

  /** False if somebody else was quicker. */
  const claim = (row: JobRow, handler: JobHandler) =>
    transact(db, {}, async (trx) => {
      if (!(await store.claimJob(trx, row.id, owner, clock.now(), LEASE_MS))) return false
      await handler.onBegin?.(trx, factsOf(row))
      changes.tellAfter(trx, row.id)
      return true
    })

  /** Who was served longest ago comes first, so that a server with many jobs cannot keep the others waiting. */
  const turnOf = (row: JobRow) => turns.get(turnKey(row)) ?? 0
  const turnKey = (row: JobRow) => `${row.kind} ${row.server_id}`

  function isBlocked(row: JobRow, handler: JobHandler): boolean {
    const same = [...running.values()].filter((other) => other.row.kind === row.kind)
    return same.length >= handler.atOnce || same.some((other) => other.row.server_id === row.server_id)
  }

  function begin(row: JobRow, handler: JobHandler): void {
    const abort = new AbortController()
    const entry: Running = { row, abort, done: Promise.resolve() }
    running.set(row.id, entry)
    entry.done = execute(row, handler, abort).finally(() => {
      running.delete(row.id)
      changes.tell(row.id)
      wake()
    })
  }

  async function execute(row: JobRow, handler: JobHandler, abort: AbortController): Promise<void> {
    let completed = false
    const progress = progressWriter(row.id)
    const context: JobContext<unknown> = {
      ...factsOf(row),
      attempt: row.attempts,
      signal: abort.signal,
      report: progress.report,
      async complete(trx, result) {
        await store.finishJob(trx, row.id, {
          status: 'completed',
          result,
          progress: progress.latest(),
          at: clock.now(),
        })
        onCommit(trx, () => {
          completed = true
          progress.stop()
          changes.tell(row.id)
        })
      },
    }
    try {
      // Asked for between the reading of the row and its claiming, when there was nobody to tell yet.
      if (await store.isToBeCancelled(db, row.id)) abort.abort()
      const result = abort.signal.aborted ? await Promise.reject(abort.signal.reason) : await handler.run(context)
      progress.stop()
      if (!completed) {
        const end = { status: 'completed', result, progress: progress.latest(), at: clock.now() } as const
        await store.finishJob(db, row.id, end)
      }
    } catch (error) {
      progress.stop()
      if (!completed) await endBadly(row, handler, { ...context, progress: progress.latest() }, error)
    } finally {
      await progress.written()
    }
  }

  async function endBadly(
    row: JobRow,
    handler: JobHandler,
    context: JobContext<unknown> & { progress: Progress | undefined },
    error: unknown,
  ): Promise<void> {
    try {
      if (context.signal.aborted && context.signal.reason === STOPPING) {
        return await store.requeueJob(db, row.id, clock.now(), null)
      }
      const problem = workError(error)
      if (problem.code === 'internal' && !context.signal.aborted)
        log.error({ err: error, jobId: row.id, kind: row.kind }, 'job failed')
      const status = context.signal.aborted ? 'cancelled' : 'failed'
      const wait = status === 'failed' ? retryWait(handler, row, error) : null
      if (wait !== null) {
        const dueAt = clock.now() + (running.get(row.id)?.hastened ? 0 : wait)
        return await store.requeueJob(db, row.id, dueAt, problem)
      }
      const end = status === 'failed' ? ({ status, error: problem } as const) : ({ status } as const)
      await transact(db, {}, async (trx) => {
        await handler.onEnd?.(trx, context, end)
        await store.finishJob(trx, row.id, { ...end, progress: context.progress, at: clock.now() })
      })
    } catch (failure) {
      // The row still says `running`; it is taken up again when its lease has run out.
      log.error({ err: failure, jobId: row.id }, 'the end of a job could not be written')
    }
  }

  function progressWriter(jobId: string) {
    let latest: Progress | undefined
    let writtenAt = clock.now()
    let isStopped = false
    let writing: Promise<void> = Promise.resolve()
    const write = (value: Progress) => {
      writtenAt = clock.now()
      writing = writing
        .then(async () => {
          if (isStopped) return
          await store.saveProgress(db, jobId, value)
          changes.tell(jobId)
        })
        .catch((error: unknown) => {
          log.warn({ err: error, jobId }, 'progress could not be written')
        })
    }
    return {
      report(progress: Progress) {
        latest = { ...progress }
        if (clock.now() - writtenAt >= PROGRESS_EVERY_MS) write(latest)
      },
      latest: () => latest,
      /** The end of the job writes the rest. */
      stop() {
        isStopped = true
      },
      written: () => writing,
    }
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
        due_at: now + delayMs,
        owner: null,
        lease_until: null,
        created_at: now,
        started_at: null,
        finished_at: null,
      }
      await store.insertJob(trx, row)
      onCommit(trx, wake)
      return row
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

    async cancel(trx, row) {
      const handler = handlers.get(row.kind)
      if (row.status !== 'queued' && row.status !== 'running')
        throw fail('job_finished', 'The job has finished already.')
      if (!handler?.cancellable) throw fail('server_busy', 'This work cannot be cancelled once it has been asked for.')
      await handler.checkCancel?.(trx, factsOf(row))
      // The row may have been claimed since it was read: only the update itself can tell.
      if (await store.cancelQueued(trx, row.id, clock.now())) {
        await handler.onEnd?.(trx, factsOf(row), { status: 'cancelled' })
        return
      }
      await store.askToCancel(trx, row.id)
      onCommit(trx, () => running.get(row.id)?.abort.abort())
    },

    async whenEnded(jobId, waitMs) {
      using changed = changes.watch(jobId)
      const deadline = performance.now() + waitMs
      do {
        const { status } = (await store.jobStatus(db, jobId)) ?? { status: 'completed' }
        if (status !== 'queued' && status !== 'running') return
      } while (await changed.wait(Math.max(0, deadline - performance.now())))
    },

    async start() {
      stopped = false
      await store.requeueOrphans(db, deps.alone ? Number.MAX_SAFE_INTEGER : clock.now())
      renewal = setInterval(() => {
        const renew = async () => {
          await store.renewLeases(db, owner, [...running.keys()], clock.now() + LEASE_MS)
          await store.requeueOrphans(db, clock.now())
        }
        renew().then(wake, (error: unknown) => log.error({ err: error }, 'leases could not be renewed'))
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

export function factsOf(row: JobRow): JobFacts<unknown> {
  const { actor, input } = JSON.parse(row.input) as { actor: Actor; input: unknown }
  return { jobId: row.id, serverId: row.server_id, input, actor }
}

/** Work that the database was away for is done again, whatever it is: nothing was wrong with it. */
function retryWait(handler: JobHandler, { attempts }: JobRow, error: unknown): number | null {
  if (isFailure(error, 'not_ready')) return backOffMs(attempts)
  return handler.retryAfterMs?.(error, attempts) ?? null
}

function workError(error: unknown): WorkError {
  const { code, detail } = toFailure(error)
  return { code, detail }
}

/** 1 s, 2 s, 4 s … up to a minute. */
export const backOffMs = (attempt: number): number => Math.min(1000 * 2 ** Math.min(attempt - 1, 10), 60_000)

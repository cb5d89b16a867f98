// One attempt at one job, from the claimed row to the row that says how it ended.
import type { Logger } from 'pino'
import { isFailure } from '../../contract/errors.ts'
import { JOB_CRASHES_MAX } from '../../contract/fixed-limits.ts'
import type { WorkError } from '../../contract/jobs.ts'
import { toFailure } from '../../http/problem.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Changes } from '../db/row-changes.ts'
import type { Db, JobRow } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import { backOffMs } from './back-off.ts'
import { crashed } from './crashes.ts'
import { factsOf, type JobContext, type JobHandler } from './handler.ts'
import { createProgressWriter, type ProgressWriter } from './progress.ts'
import * as store from './store.ts'

/** The reason of an abort that puts the job back into the queue. */
export const STOPPING = Symbol('stopping')

export interface Attempt {
  row: JobRow
  abort: AbortController
  /** Somebody asked for it meanwhile: should this attempt fail, the next follows at once. */
  hastened?: boolean
}

export interface ExecutionDeps {
  db: Db
  changes: Changes
  clock: { now(): number }
  log: Logger
}

export function createExecution(deps: ExecutionDeps): (attempt: Attempt, handler: JobHandler) => Promise<void> {
  const { db, changes, clock, log } = deps

  async function endBadly(attempt: Attempt, handler: JobHandler, progress: ProgressWriter, error: unknown) {
    const { row, abort } = attempt
    const { signal } = abort
    if (signal.aborted && signal.reason === STOPPING) return store.requeueJob(db, row.id, clock.now(), null)
    const problem = workError(error)
    const isCancelled =
      signal.aborted && !isFailure(signal.reason, 'job_crashed') && (!handler.settlesCancel || error === signal.reason)
    if (problem.code === 'internal' && !isCancelled)
      log.error({ err: error, jobId: row.id, kind: row.kind }, 'job failed')
    const status = isCancelled ? 'cancelled' : 'failed'
    const waitMs = status === 'failed' ? retryWaitMs(handler, row, error) : null
    if (waitMs !== null) return store.requeueJob(db, row.id, clock.now() + (attempt.hastened ? 0 : waitMs), problem)
    const end = status === 'failed' ? ({ status, error: problem } as const) : ({ status } as const)
    await transact(db, {}, async (trx) => {
      await lockServer(trx, row.server_id)
      await handler.onEnd?.(trx, factsOf(row), end)
      await store.finishJob(trx, row.id, { ...end, progress: progress.latest(), at: clock.now() })
    })
  }

  return async (attempt, handler) => {
    const { row, abort } = attempt
    let completed = false
    const progress = createProgressWriter(deps, row.id)
    const end = (result: unknown) =>
      ({ status: 'completed', result, progress: progress.latest(), at: clock.now() }) as const
    const context: JobContext<unknown> = {
      ...factsOf(row),
      attempt: row.attempts,
      signal: abort.signal,
      report: progress.report,
      async complete(trx, result) {
        await store.finishJob(trx, row.id, end(result))
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
      if (row.crashes >= JOB_CRASHES_MAX && handler.settlesCancel) abort.abort(crashed())
      if (!handler.settlesCancel) abort.signal.throwIfAborted()
      const result = await handler.run(context)
      progress.stop()
      if (!completed) await store.finishJob(db, row.id, end(result))
    } catch (error) {
      progress.stop()
      if (!completed) {
        await endBadly(attempt, handler, progress, error).catch((failure: unknown) => {
          // The row still says `running`; it is taken up again when its lease has run out.
          log.error({ err: failure, jobId: row.id }, 'the end of a job could not be written')
        })
      }
    } finally {
      await progress.written()
    }
  }
}

/** Work that the database was away for is done again, whatever it is: nothing was wrong with it. */
function retryWaitMs(handler: JobHandler, { attempts }: JobRow, error: unknown): number | null {
  if (isFailure(error, 'not_ready')) return backOffMs(attempts)
  return handler.retryAfterMs?.(error, attempts) ?? null
}

function workError(error: unknown): WorkError {
  const { code, detail } = toFailure(error)
  return { code, detail }
}

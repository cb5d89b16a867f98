// A start that somebody asked for and that has to wait for an installation. It is a job in the queue from the moment it is asked
// for: it outlives whoever asked and the process, is listed and cancelled as other jobs are, and ends with its server.
import { isFailure } from '../../contract/errors.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Db, JobRow, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { backOffMs, type JobContext, type Jobs } from '../jobs/runner.ts'
import { activeJobsOf, findJob } from '../jobs/store.ts'

const KIND = 'start'
const AT_ONCE = 4
const BUSY_ATTEMPTS = 5
/** Until it is granted it is not due. */
const NOT_DUE_MS = 10 * 365 * 24 * 3600_000
const CANCEL_WAIT_MS = 10_000

export interface StartWishes {
  /** Answers the id of the job. The server is locked. */
  make(trx: Trx, actor: Actor, serverId: string): Promise<string>
  /** What it waited for has ended well. It may have been cancelled meanwhile. */
  grant(trx: Trx, jobId: string): Promise<void>
  /** What it waited for has ended otherwise. */
  drop(trx: Trx, serverId: string, jobId: string): Promise<void>
  /** Somebody wants the game to stay stopped. None begins to start it after this; those that have begun are waited for. */
  cancelAllOf(serverId: string, options: { isPatient: boolean }): Promise<void>
  /** How a game is started; must be idempotent. */
  register(start: (job: Pick<JobContext<unknown>, 'actor' | 'serverId' | 'signal'>) => Promise<void>): void
}

const isPending = ({ status }: JobRow) => status === 'queued' || status === 'running'

export function createStartWishes({ db, activity, jobs }: { db: Db; activity: Activity; jobs: Jobs }): StartWishes {
  const cancelIfPending = async (trx: Trx, serverId: string, jobId: string) => {
    const row = await findJob(trx, serverId, jobId)
    if (row && isPending(row)) await jobs.cancel(trx, row)
  }

  return {
    async make(trx, actor, serverId) {
      return (await jobs.enqueue(trx, actor, { kind: KIND, serverId, input: {}, delayMs: NOT_DUE_MS })).id
    },

    async grant(trx, jobId) {
      await jobs.hasten(trx, jobId)
    },

    drop: cancelIfPending,

    async cancelAllOf(serverId, { isPatient }) {
      const wishes = (await activeJobsOf(db, serverId)).filter(({ kind }) => kind === KIND)
      for (const { id } of wishes) {
        await transact(db, {}, async (trx) => {
          await lockServer(trx, serverId)
          await cancelIfPending(trx, serverId, id)
        }).catch((error: unknown) => {
          // It was done in this moment.
          if (!isFailure(error, 'job_finished')) throw error
        })
        // One that is being done is over before the game is stopped.
        if (isPatient) await jobs.whenEnded(id, CANCEL_WAIT_MS)
      }
    },

    register(start) {
      jobs.register(KIND, {
        cancellable: true,
        atOnce: AT_ONCE,
        run: start,
        retryAfterMs(error, attempt) {
          const mayPass = !isFailure(error) || isFailure(error, 'server_busy') || isFailure(error, 'agent_unreachable')
          return mayPass && attempt < BUSY_ATTEMPTS ? backOffMs(attempt) : null
        },
        async onEnd(trx, { actor, serverId, jobId }, { status, error }) {
          if (status === 'cancelled') return
          await activity.record(trx, actor, 'job.failed', serverId, { jobId, kind: KIND, error })
        },
      })
    },
  }
}

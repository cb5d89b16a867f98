// Records how restores end, in one transaction. The agent keeps the result of a restore until it is told that it has
// been recorded here, so even if the transaction fails, it is recorded once.

import type { RestoreReport, StoppedRestore } from '../../../contract/agent/agent-backups.ts'
import type { Agent } from '../../../contract/agent.ts'
import { isFailure } from '../../../contract/errors.ts'
import type { Activity } from '../../activity/service.ts'
import { lockServer } from '../../db/lock-server.ts'
import type { Db, ServerRow, Trx } from '../../db/tables.ts'
import { transact } from '../../db/transact.ts'
import type { Actor } from '../../http/actor.ts'
import type { JobContext } from '../../jobs/runner.ts'
import type { RetentionService } from '../retention/retention.ts'
import * as store from '../store.ts'

export interface RestoreInput {
  backupId: string
  sourceServerId: string
  mode: 'replace' | 'merge'
  paths: string[] | null
  safetyBackupId: string | null
  /** Whether the game is stopped for it, and started again afterwards. Earlier versions knew no such thing. */
  stop?: boolean
}

/** A restore, with the id of the job that began it. */
export interface Restore extends RestoreInput {
  jobId: string
}

/** As the row of its server keeps it. What only the job knew is null where a restored database has lost it. */
export type UnfinishedRestore = Omit<StoppedRestore, 'backupId'> & Pick<Restore, 'backupId'> & { input: Restore | null }

export const unfinishedOf = ({ unfinished_restore: text }: Pick<ServerRow, 'unfinished_restore'>) =>
  text === null ? null : (JSON.parse(text) as UnfinishedRestore)

export interface RestoreEnds {
  /** Ends the job with it. Fails with something that is no `Failure` if the database refuses: then it is safe to repeat. */
  restored(job: JobContext<unknown>, restore: Restore, report: RestoreReport & { isRestarted: boolean }): Promise<void>
  undone(job: JobContext<unknown>, restore: Restore): Promise<void>
  stopped(trx: Trx, actor: Actor, serverId: string, unfinished: UnfinishedRestore): Promise<void>
}

export function createRestoreEnds(deps: {
  db: Db
  agent: Pick<Agent, 'backups'>
  activity: Activity
  retention: RetentionService
  clock: { now(): number }
}): RestoreEnds {
  const { db, agent, activity, retention, clock } = deps

  /** That the disk of the database is full says nothing about the restore. */
  async function record(work: (trx: Trx) => Promise<void>): Promise<void> {
    try {
      await transact(db, {}, work)
    } catch (error) {
      throw isFailure(error) ? new Error('the end of a restore could not be recorded', { cause: error }) : error
    }
  }

  async function end(job: JobContext<unknown>, restore: Restore, result: object, work: (trx: Trx) => Promise<void>) {
    const { serverId } = job
    await record(async (trx) => {
      await lockServer(trx, serverId)
      await work(trx)
      await store.setUnfinishedRestore(trx, serverId, null)
      await job.complete(trx, result)
    })
    // Whatever comes between is made up for at the next start, or before the next restore.
    await agent.backups.forgetRestore({ serverId, jobId: restore.jobId }).catch(() => {})
  }

  return {
    restored(job, { jobId, backupId, sourceServerId, mode, paths, safetyBackupId }, report) {
      const result = { ...report, backupId, safetyBackupId }
      const restore = { jobId, backupId, sourceServerId, mode, paths, safetyBackupId }
      return end(job, restore, result, async (trx) => {
        const properties = { jobId, sourceServerId, mode, paths, ...result }
        await activity.record(trx, job.actor, 'backup.restored', job.serverId, properties)
        if (safetyBackupId !== null) await store.updateBackup(trx, safetyBackupId, { replaced_at: clock.now() })
        await retention.afterSuccess(trx, job.serverId)
      })
    },
    undone: (job, restore) =>
      end(job, restore, { direction: 'back', backupId: restore.backupId }, async (trx) => {
        const { jobId, backupId, safetyBackupId } = restore
        await activity.record(trx, job.actor, 'backup.restore_undone', job.serverId, {
          jobId,
          backupId,
          safetyBackupId,
        })
      }),
    async stopped(trx, actor, serverId, unfinished) {
      const { jobId, backupId, path, reason } = unfinished
      await store.setUnfinishedRestore(trx, serverId, JSON.stringify(unfinished))
      await activity.record(trx, actor, 'backup.restore_unfinished', serverId, { jobId, backupId, path, reason })
    },
  }
}

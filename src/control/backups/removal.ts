// Deleting backups: from the list in one transaction, then from the store, then the row, and some time later the space.
import type { ActivityEvent } from '../../contract/activity.ts'
import type { Agent } from '../../contract/agent.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Changes } from '../db/row-changes.ts'
import type { BackupRow, Db, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import { type Actor, SYSTEM } from '../http/actor.ts'
import { runAgentTask } from '../jobs/agent-task.ts'
import { backOffMs, type Jobs } from '../jobs/runner.ts'
import type { OffsiteService } from './offsite/service.ts'
import * as store from './store.ts'

export const REMOVE = 'backup.delete'
const RECLAIM = 'backups.reclaim'
/** Jobs that concern the store as a whole belong to no server. */
export const NO_SERVER = ''
const RECLAIM_AFTER_MS = 10 * 60_000

export interface Removal {
  /** The lock has been looked at; the row is not under way. */
  remove(trx: Trx, actor: Actor, row: BackupRow, event: ActivityEvent, properties?: object): Promise<void>
  /** Deleted for its owner while it was under way, which it no longer is: now the store lets go of it too. */
  finish(trx: Trx, row: BackupRow): Promise<void>
  /** For the time when a server goes: everything of it leaves the store. */
  removeAllOf(serverId: string): Promise<void>
  reclaimSoon(trx: Trx, delayMs?: number): Promise<void>
}

export function createRemoval(deps: {
  db: Db
  agent: Pick<Agent, 'backups' | 'tasks'>
  activity: Activity
  jobs: Jobs
  changes: Changes
  offsite: Pick<OffsiteService, 'wake'>
  clock: { now(): number }
}): Removal {
  const { db, agent, activity, jobs, changes, offsite, clock } = deps

  async function reclaimSoon(trx: Trx, delayMs = RECLAIM_AFTER_MS): Promise<void> {
    const waiting = await store.activeJobs(trx, NO_SERVER, [RECLAIM])
    if (waiting.some((job) => job.status === 'queued')) return
    await jobs.enqueue(trx, SYSTEM, { kind: RECLAIM, serverId: NO_SERVER, input: {}, delayMs })
  }

  jobs.register<{ backupId: string }>(REMOVE, {
    isNeverGivenUp: true,
    cancellable: false,
    atOnce: 4,
    retryAfterMs: (_error, attempt) => backOffMs(attempt),
    async run({ serverId, input: { backupId }, complete }) {
      await agent.backups.remove({ serverId, backupId })
      await transact(db, {}, async (trx) => {
        await lockServer(trx, serverId)
        await store.removeRow(trx, backupId, clock.now())
        await reclaimSoon(trx)
        await complete(trx)
        onCommit(trx, offsite.wake)
      })
    },
  })

  jobs.register(RECLAIM, {
    cancellable: false,
    atOnce: 1,
    retryAfterMs: (_error, attempt) => (attempt < 5 ? backOffMs(attempt) : null),
    async run(job) {
      const task = { ...job, jobId: `${job.jobId}.${job.attempt}` }
      const report = await runAgentTask(agent.tasks, task, { kind: 'backups.reclaim' })
      offsite.wake()
      return report
    },
  })

  const finish: Removal['finish'] = async (trx, row) => {
    await jobs.enqueue(trx, SYSTEM, { kind: REMOVE, serverId: row.server_id, input: { backupId: row.id } })
  }

  return {
    reclaimSoon,
    finish,

    async remove(trx, actor, row, event, properties = {}) {
      await store.updateBackup(trx, row.id, { deleted_at: clock.now() })
      changes.tellAfter(trx, row.id)
      const recorded = { backupId: row.id, name: row.name, ...properties }
      await activity.record(trx, actor, event, row.server_id, recorded)
      await finish(trx, row)
    },

    async removeAllOf(serverId) {
      const listed = (await agent.backups.list({ serverId })).map(({ backupId }) => backupId)
      // Before they are gone: nobody takes them for lost.
      await transact(db, {}, (trx) => store.noteDeleted(trx, listed, clock.now()))
      for (const backupId of listed) await agent.backups.remove({ serverId, backupId })
      await transact(db, {}, (trx) => reclaimSoon(trx))
    },
  }
}

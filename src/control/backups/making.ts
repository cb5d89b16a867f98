// The work behind a backup. Its row exists before the work starts, and says how it ended, whatever happens in between.
import type { Logger } from 'pino'
import type { BackupReport } from '../../contract/agent/agent-backups.ts'
import type { Agent } from '../../contract/agent.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Changes } from '../db/row-changes.ts'
import type { BackupRow, Db, ServerRow, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { runAgentTask } from '../jobs/agent-task.ts'
import { type BadEnd, backOffMs, type JobContext, type Jobs } from '../jobs/runner.ts'
import { findServer } from '../servers/service.ts'
import type { LockKeeper } from './locks.ts'
import type { OffsiteService } from './offsite/service.ts'
import { reported } from './present.ts'
import type { Removal } from './removal.ts'
import type { RetentionService } from './retention/retention.ts'
import * as store from './store.ts'

export const BACKUP = 'backup'
const ATTEMPTS = 20

export interface Making {
  /** Has the agent make the backup of this row. Safe to repeat: one that is in the store already is only reported. */
  make(job: JobContext<unknown>, row: BackupRow): Promise<BackupReport>
  complete(trx: Trx, actor: Actor, backupId: string, report: BackupReport): Promise<void>
  /** Once that is known: a lock that was set or lifted while it was made is not in its manifest. */
  keepLock(report: BackupReport): Promise<void>
  end(trx: Trx, actor: Actor, backupId: string, end: BadEnd): Promise<void>
}

export function createMaking(deps: {
  db: Db
  agent: Pick<Agent, 'tasks'>
  games: { ignoredBy(row: ServerRow): Promise<string> }
  activity: Activity
  jobs: Jobs
  removal: Removal
  retention: RetentionService
  locks: LockKeeper
  offsite: Pick<OffsiteService, 'firstState' | 'wake'>
  changes: Changes
  clock: { now(): number }
  log: Logger
  atOnce: number
}): Making {
  const { db, agent, games, activity, jobs, removal, retention, locks, offsite, changes, clock, log } = deps

  async function begin(trx: Trx, row: BackupRow): Promise<void> {
    await store.updateBackup(trx, row.id, { status: 'running', started_at: row.started_at ?? clock.now() })
    changes.tellAfter(trx, row.id)
  }

  /** The server before its backups, as everyone else does: so that no two wait for each other. */
  async function locked(trx: Trx, backupId: string): Promise<BackupRow | undefined> {
    const row = await store.findRow(trx, backupId)
    if (!row) return undefined
    await lockServer(trx, row.server_id)
    return await store.findRow(trx, backupId)
  }

  const making: Making = {
    async make(job, row) {
      if (row.status !== 'running') {
        await transact(db, {}, async (trx) => {
          const current = await locked(trx, row.id)
          if (current?.status === 'queued') await begin(trx, current)
        })
      }
      const server = await findServer(db, row.server_id)
      const work = {
        kind: 'backups.create' as const,
        backupId: row.id,
        name: row.name,
        ...(server ? { serverName: server.name } : {}),
        createdAt: row.created_at,
        ignored: row.ignored,
        ...(server ? { ignoredByTemplate: await games.ignoredBy(server) } : {}),
        isLocked: row.locked === 1,
      }
      // Another attempt is another task: the agent remembers how the last one ended.
      const task = { ...job, jobId: `${job.jobId}.${row.id}.${job.attempt}` }
      return await runAgentTask(agent.tasks, task, work)
    },

    async complete(trx, actor, backupId, report) {
      const row = await locked(trx, backupId)
      if (!row) return
      await store.updateBackup(trx, backupId, reported(report, offsite.firstState))
      onCommit(trx, offsite.wake)
      changes.tellAfter(trx, backupId)
      if (row.deleted_at !== null) return removal.finish(trx, row)
      await activity.record(trx, actor, 'backup.completed', row.server_id, {
        backupId,
        name: row.name,
        fileCount: report.fileCount,
        sizeBytes: report.sizeBytes,
        storedBytes: report.storedBytes,
        consistency: report.consistency,
        heldMs: report.heldMs ?? null,
        warningCount: report.warningCount,
      })
      await retention.afterSuccess(trx, row.server_id)
    },

    keepLock: ({ serverId, backupId, isLocked }) =>
      locks.inTurn(backupId, async () => {
        const row = await store.findRow(db, backupId)
        if (row && (row.locked === 1) !== isLocked) await locks.keep(serverId, backupId, row.locked === 1)
      }),

    async end(trx, actor, backupId, { status, error }) {
      const row = await locked(trx, backupId)
      if (!row || row.status === 'completed') return
      const failure = error ?? { code: 'internal', detail: 'It was cancelled.' }
      await store.updateBackup(trx, backupId, { status: 'failed', error: JSON.stringify(failure) })
      changes.tellAfter(trx, backupId)
      if (row.deleted_at !== null) return removal.finish(trx, row)
      if (status === 'cancelled') return removal.remove(trx, actor, row, 'backup.cancelled')
      await activity.record(trx, actor, 'backup.failed', row.server_id, { backupId, name: row.name, error })
      onCommit(trx, () => log.error({ backupId, serverId: row.server_id, error: failure }, 'a backup failed'))
    },
  }

  jobs.register<{ backupId: string }>(BACKUP, {
    cancellable: true,
    atOnce: deps.atOnce,
    async checkCancel(trx, { input }) {
      const row = await store.findRow(trx, input.backupId)
      if (row?.locked === 1) throw fail('backup_locked', 'The backup is locked. Unlock it first.')
    },
    retryAfterMs: (error, attempt) =>
      (isFailure(error, 'server_busy') || isFailure(error, 'agent_unreachable')) && attempt < ATTEMPTS
        ? backOffMs(attempt)
        : null,
    async onBegin(trx, { input }) {
      const row = await store.findRow(trx, input.backupId)
      if (row && row.status !== 'completed') await begin(trx, row)
    },
    async run(job) {
      const row = await store.findRow(db, job.input.backupId)
      if (!row) return
      const report = await making.make(job, row)
      await transact(db, {}, async (trx) => {
        await making.complete(trx, job.actor, row.id, report)
        await job.complete(trx, { backupId: row.id })
      })
      await making.keepLock(report)
    },
    onEnd: (trx, job, end) => making.end(trx, job.actor, job.input.backupId, end),
  })

  return making
}

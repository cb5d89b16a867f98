// Rehearsals: whether the game of a server comes up from one of its backups. That a backup is verified says that its bytes
// are right; that it is rehearsed, that a game has started from them.
import type { GameLimits, RehearsalReport } from '../../contract/agent/agent-games.ts'
import type { Agent } from '../../contract/agent.ts'
import type { Rehearsal, RehearsalLog, RehearsalRequest } from '../../contract/backups/rehearsals.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import { REHEARSAL_SECONDS } from '../../contract/fixed-limits.ts'
import type { Launch } from '../../contract/games/launch.ts'
import type { Job } from '../../contract/jobs.ts'
import { iso } from '../../kit/time.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Changes } from '../db/row-changes.ts'
import type { BackupRow, Db, JobRow, ServerRow, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { runAgentTask } from '../jobs/agent-task.ts'
import { backOffMs, type JobContext, type Jobs } from '../jobs/runner.ts'
import { presentJob } from '../jobs/store.ts'
import { findServer, lockReadyServer, requireServer } from '../servers/service.ts'
import { noSuchBackup, requireCompleted } from './present.ts'
import * as store from './store.ts'

export const REHEARSE = 'rehearse'

interface RehearsalInput {
  backupId: string
  timeoutSeconds: number
}

export interface Rehearsals {
  start(
    actor: Actor,
    serverId: string,
    backupId: string,
    request: RehearsalRequest,
  ): Promise<Job & { serverId: string }>
  /** The same, of a backup that has completed, in a transaction that has locked the server. */
  enqueue(trx: Trx, actor: Actor, row: BackupRow, request?: RehearsalRequest): Promise<JobRow>
  read(actor: Actor, serverId: string, backupId: string): Promise<RehearsalLog>
}

export function createRehearsals(deps: {
  db: Db
  agent: Pick<Agent, 'tasks'>
  activity: Activity
  jobs: Jobs
  changes: Changes
  /** How the game of a server is started. */
  games: { launchFor(row: ServerRow): Promise<{ launch: Launch; limits: GameLimits }> }
  clock: { now(): number }
}): Rehearsals {
  const { db, agent, activity, jobs, changes, games, clock } = deps

  async function run(job: JobContext<RehearsalInput>): Promise<void> {
    const { backupId, timeoutSeconds } = job.input
    const server = await findServer(db, job.serverId)
    if (!server) return
    const task = { ...job, jobId: `${job.jobId}.${job.attempt}` }
    const work = { kind: 'backups.rehearse' as const, backupId, timeoutSeconds, ...(await games.launchFor(server)) }
    const report = await runAgentTask(agent.tasks, task, work)
    await transact(db, {}, async (trx) => {
      await lockServer(trx, job.serverId)
      const row = await store.findRow(trx, backupId)
      if (row && row.deleted_at === null) await note(trx, job.actor, row, report)
      const { outcome, reason } = report
      await job.complete(trx, { backupId, outcome, reason })
    })
  }

  async function note(trx: Trx, actor: Actor, row: BackupRow, { outcome, reason, log }: RehearsalReport) {
    const now = clock.now()
    const { id: backupId, server_id: serverId, name } = row
    const rehearsal = JSON.stringify({ outcome, at: iso(now), reason } satisfies Rehearsal)
    const isPassed = outcome === 'passed'
    await store.updateBackup(trx, backupId, { rehearsal, ...(isPassed ? { rehearsed_at: now } : {}) })
    await store.keepRehearsalLog(trx, { backup_id: backupId, server_id: serverId, log: JSON.stringify(log) })
    const event = isPassed ? 'backup.rehearsed' : 'backup.rehearsal_failed'
    await activity.record(trx, actor, event, serverId, { backupId, name, reason })
    changes.tellAfter(trx, backupId)
  }

  jobs.register<RehearsalInput>(REHEARSE, {
    cancellable: true,
    // A second game beside each that runs is all that a machine is asked for.
    atOnce: 1,
    retryAfterMs: (error, attempt) =>
      isFailure(error, 'agent_unreachable') && attempt < 5 ? backOffMs(attempt) : null,
    run,
    async onEnd(trx, { jobId, serverId, actor, input }, end) {
      if (end.status === 'cancelled') return
      const { backupId } = input
      await activity.record(trx, actor, 'job.failed', serverId, { jobId, kind: REHEARSE, backupId, error: end.error })
    },
  })

  const enqueue: Rehearsals['enqueue'] = async (trx, actor, row, request = {}) => {
    const { id: backupId, server_id: serverId, damage } = row
    if (damage !== null) throw fail('backup_damaged', damage)
    await jobs.requireRoom(trx, serverId)
    const { timeoutSeconds = REHEARSAL_SECONDS.default } = request
    const input: RehearsalInput = { backupId, timeoutSeconds }
    const job = await jobs.enqueue(trx, actor, { kind: REHEARSE, serverId, input })
    await activity.record(trx, actor, 'job.started', serverId, { jobId: job.id, kind: REHEARSE, backupId })
    return job
  }

  return {
    enqueue,
    start: (actor, serverId, backupId, request) =>
      transact(db, actor, async (trx) => {
        await lockReadyServer(trx, actor, serverId)
        const row = await store.findBackup(trx, serverId, backupId)
        if (!row) throw noSuchBackup()
        const job = await enqueue(trx, actor, requireCompleted(row), request)
        return { ...presentJob(job), serverId }
      }),

    async read(actor, serverId, backupId) {
      await requireServer(db, actor, serverId)
      const row = await store.findBackup(db, serverId, backupId)
      if (!row) throw noSuchBackup()
      if (row.rehearsal === null) throw fail('not_found', 'The backup has not been rehearsed.')
      return { ...(JSON.parse(row.rehearsal) as Rehearsal), log: await store.findRehearsalLog(db, backupId) }
    },
  }
}

// Restoring: first a backup of the current files, then the agent verifies, stages and swaps. A failure before the swap
// leaves the files unchanged. One in the middle of it is an outcome of its own: the restore is unfinished, and the
// server stays busy until somebody has chosen how it ends; see restore-finish.ts.

import type { StoppedRestore } from '../../../contract/agent/agent-backups.ts'
import type { Agent } from '../../../contract/agent.ts'
import type { RestoreRequest } from '../../../contract/backups/backups.ts'
import { fail, isFailure } from '../../../contract/errors.ts'
import type { Job } from '../../../contract/jobs.ts'
import type { Activity } from '../../activity/service.ts'
import type { BackupRow, Db, Trx } from '../../db/tables.ts'
import { transact } from '../../db/transact.ts'
import { type Actor, requireScope, SYSTEM } from '../../http/actor.ts'
import { runAgentTask } from '../../jobs/agent-task.ts'
import { STOPPING } from '../../jobs/execution.ts'
import { type BadEnd, backOffMs, type JobContext, type JobFacts, type Jobs } from '../../jobs/runner.ts'
import { presentJob } from '../../jobs/store.ts'
import { lockReadyServers, requireFinishedRestore, requireServer, requireStopped } from '../../servers/service.ts'
import type { Making } from '../making.ts'
import { newBackupRow, noSuchBackup, requireCompleted } from '../present.ts'
import * as store from '../store.ts'
import { VERIFY } from '../verify.ts'
import type { RestoreEnds, RestoreInput } from './restore-ends.ts'
import type { RestorePauses } from './restore-pauses.ts'

const NAME_MAX = 191
const BUSY_ATTEMPTS = 5

export interface Restores {
  start(actor: Actor, serverId: string, backupId: string, request: RestoreRequest): Promise<Job & { serverId: string }>
}

export function createRestores(deps: {
  db: Db
  agent: Pick<Agent, 'tasks' | 'backups'>
  activity: Activity
  jobs: Jobs
  making: Making
  ends: RestoreEnds
  pauses: RestorePauses
  clock: { now(): number }
}): Restores {
  const { db, agent, activity, jobs, making, ends, pauses, clock } = deps
  /** Why a job's restore stopped, between the failure and the transaction that records it. */
  const stops = new Map<string, StoppedRestore>()

  /** A path that is not in the backup is found before anything is made, at the request and again when its turn comes. */
  async function requirePaths(serverId: string, backupId: string, paths: string[] | null): Promise<void> {
    if (paths !== null) await agent.backups.requirePaths({ serverId, backupId, paths })
  }

  async function checkRequest(actor: Actor, serverId: string, backupId: string, paths: string[] | null) {
    if (paths === null) return
    await requireServer(db, actor, serverId)
    const row = await store.findBackup(db, serverId, backupId)
    if (!row) throw noSuchBackup()
    requireCompleted(row)
    await requirePaths(serverId, backupId, paths)
  }

  async function keepWhatIsThere(job: JobContext<RestoreInput>): Promise<void> {
    const { safetyBackupId } = job.input
    const row = safetyBackupId === null ? undefined : await store.findRow(db, safetyBackupId)
    if (!row || row.status === 'completed') return
    const report = await making.make(job, row)
    await transact(db, {}, (trx) => making.complete(trx, job.actor, row.id, report))
    await making.keepLock(report)
  }

  /** An attempt before this one may have changed files, and could not record it. Then nothing is made or cancelled any more. */
  async function hasBegun({ jobId, serverId, attempt, signal }: JobContext<RestoreInput>): Promise<boolean> {
    if (attempt === 1 && !signal.aborted) return false
    return (await agent.backups.readRestore({ serverId, jobId })) !== null
  }

  async function run(job: JobContext<RestoreInput>): Promise<void> {
    const { backupId, sourceServerId, mode, paths, safetyBackupId, stop = false } = job.input
    if (!(await hasBegun(job))) {
      job.signal.throwIfAborted()
      await requirePaths(sourceServerId, backupId, paths)
      // Before the safety backup, which then has all that the game saves when it stops.
      if (stop) await pauses.pause(job)
      await keepWhatIsThere(job)
    }
    const task = { ...job, jobId: `${job.jobId}.${job.attempt}` }
    const work = {
      kind: 'backups.restore' as const,
      jobId: job.jobId,
      backupId,
      sourceServerId,
      mode,
      paths,
      safetyBackupId,
    }
    const report = await runAgentTask(agent.tasks, task, work)
    // Before the job ends: whoever dies in between finds the job, and does it again.
    const isRestarted = stop && (await pauses.resume(job.serverId, job.jobId))
    await ends.restored(job, { ...job.input, jobId: job.jobId }, { ...report, isRestarted })
  }

  /** Whether no other attempt follows this one. */
  function isLast({ signal, attempt }: JobContext<RestoreInput>, error: unknown): boolean {
    if (signal.reason === STOPPING || isFailure(error, 'not_ready')) return false
    return (signal.aborted && error === signal.reason) || retryAfterMs(error, attempt) === null
  }

  async function onEnd(trx: Trx, { jobId, serverId, actor, input }: JobFacts<RestoreInput>, end: BadEnd) {
    const { backupId, sourceServerId, safetyBackupId } = input
    if (safetyBackupId !== null) await making.end(trx, actor, safetyBackupId, end)
    const { error = null } = end
    if (error?.code === 'restore_unfinished') {
      const { since, path, reason } = stops.get(jobId) ?? { since: clock.now(), path: null, reason: error.detail }
      stops.delete(jobId)
      const unfinished = { jobId, backupId, since, path, reason, input: { ...input, jobId } }
      return await ends.stopped(trx, actor, serverId, unfinished)
    }
    const event = end.status === 'cancelled' ? 'backup.restore_cancelled' : 'backup.restore_failed'
    await activity.record(trx, actor, event, serverId, { jobId, backupId, error })
    // What exactly is damaged is found out at once, and shown.
    if (error?.code === 'backup_damaged')
      await jobs.enqueue(trx, SYSTEM, { kind: VERIFY, serverId: sourceServerId, input: { backupId } })
  }

  jobs.register<RestoreInput>(store.RESTORE, {
    cancellable: true,
    settlesCancel: true,
    atOnce: 4,
    retryAfterMs,
    async run(job) {
      try {
        await run(job)
      } catch (error) {
        const { serverId, jobId } = job
        const stopped = isFailure(error, 'restore_unfinished') ? await agent.backups.stoppedRestore({ serverId }) : null
        if (stopped) stops.set(jobId, stopped)
        // The old world again. One that has stopped in the middle waits for whoever finishes it.
        else if (job.input.stop && isLast(job, error)) await pauses.resume(serverId, jobId)
        throw error
      }
    },
    onEnd,
  })

  async function requireIdle(trx: Trx, serverId: string): Promise<void> {
    if ((await store.activeOf(trx, serverId)).length > 0)
      throw fail('server_busy', 'A backup of this server is queued or under way.')
    if ((await store.activeJobs(trx, serverId, store.RESTORES)).length > 0)
      throw fail('server_busy', 'A restore of this server is under way.')
  }

  async function insertSafety(trx: Trx, row: BackupRow, jobId: string, actor: Actor): Promise<void> {
    await store.insertBackup(trx, { ...row, job_id: jobId })
    const properties = { backupId: row.id, name: row.name, isLocked: false }
    await activity.record(trx, actor, 'backup.started', row.server_id, properties)
  }

  return {
    async start(actor, serverId, backupId, request) {
      const { paths = null, mode = 'replace', safetyBackup = true, targetServerId, stop = false } = request
      if (stop) requireScope(actor, 'power:write')
      await checkRequest(actor, serverId, backupId, paths)
      return transact(db, actor, async (trx) => {
        // Whoever deletes or expires the backup takes turns with this.
        const [, target] = await lockReadyServers(trx, actor, [serverId, targetServerId ?? serverId])
        const row = await store.findBackup(trx, serverId, backupId)
        if (!row) throw noSuchBackup()
        requireSound(requireCompleted(row), paths)
        requireFinishedRestore(target)
        if (!stop) requireStopped(target)
        await requireIdle(trx, target.id)
        const name = `Before restoring ${row.name}`.slice(0, NAME_MAX).toWellFormed()
        const safety = safetyBackup ? newBackupRow(target.id, { name }, clock.now(), 'safety') : null
        const input = { backupId, sourceServerId: serverId, mode, paths, safetyBackupId: safety?.id ?? null, stop }
        const job = await jobs.enqueue(trx, actor, { kind: store.RESTORE, serverId: target.id, input })
        if (safety) await insertSafety(trx, safety, job.id, actor)
        await activity.record(trx, actor, 'backup.restore_started', target.id, { jobId: job.id, ...input })
        return { ...presentJob(job), serverId: target.id }
      })
    },
  }
}

function retryAfterMs(error: unknown, attempt: number): number | null {
  // The database refuses. How the restore ended stands on the agent's disk, and must not be given up.
  if (!isFailure(error)) return backOffMs(attempt)
  return isFailure(error, 'server_busy') && attempt < BUSY_ATTEMPTS ? backOffMs(attempt) : null
}

/** Parts of a damaged backup may be whole: the agent checks what was chosen. */
function requireSound(row: BackupRow, paths: readonly string[] | null): void {
  if (row.damage === null || paths !== null) return
  const hint = 'Restore chosen paths, or verify it again if a backup since has healed it.'
  throw fail('backup_damaged', `${row.damage} ${hint}`)
}

// A restore that has stopped in the middle ends by choice: forward, to what the backup has, or back, to what was there
// before it. Until then its server is busy; the agent, which has the state on disk, knows whether there is one.
import type { Logger } from 'pino'
import type { StoppedRestore } from '../../../contract/agent/agent-backups.ts'
import type { Agent } from '../../../contract/agent.ts'
import { fail, isFailure } from '../../../contract/errors.ts'
import type { Job } from '../../../contract/jobs.ts'
import type { Activity } from '../../activity/service.ts'
import { lockServer } from '../../db/lock-server.ts'
import type { Db, Trx } from '../../db/tables.ts'
import { transact } from '../../db/transact.ts'
import { type Actor, SYSTEM } from '../../http/actor.ts'
import { runAgentTask } from '../../jobs/agent-task.ts'
import { type BadEnd, backOffMs, type JobContext, type JobFacts, type Jobs } from '../../jobs/runner.ts'
import { presentJob } from '../../jobs/store.ts'
import { lockReadyServer, requireReady, requireServer } from '../../servers/service.ts'
import * as store from '../store.ts'
import { type Restore, type RestoreEnds, unfinishedOf } from './restore-ends.ts'
import type { RestorePauses } from './restore-pauses.ts'

type Direction = 'forward' | 'back'

interface FinishInput {
  direction: Direction
  restore: Restore
}

export interface RestoreFinishing {
  start(actor: Actor, serverId: string, direction: Direction): Promise<Job & { serverId: string }>
  /**
   * What servers are said to have stopped in, as the agent has it: where the database is an older copy, for instance. What
   * has ended and no job has to record any more, the agent forgets.
   */
  reconcile(): Promise<void>
}

export function createRestoreFinishing(deps: {
  db: Db
  agent: Pick<Agent, 'tasks' | 'backups'>
  activity: Activity
  jobs: Jobs
  ends: RestoreEnds
  pauses: RestorePauses
  log: Logger
}): RestoreFinishing {
  const { db, agent, activity, jobs, ends, pauses, log } = deps

  async function stoppedOn(serverId: string): Promise<StoppedRestore | null> {
    try {
      return await agent.backups.stoppedRestore({ serverId })
    } catch (error) {
      if (isFailure(error, 'not_found') || isFailure(error, 'server_deleted')) return null
      throw error
    }
  }

  async function run(job: JobContext<FinishInput>): Promise<void> {
    const { direction, restore } = job.input
    const task = { ...job, jobId: `${job.jobId}.${job.attempt}` }
    const work = { kind: 'backups.finishRestore' as const, jobId: restore.jobId, direction }
    const { phase, report } = await runAgentTask(agent.tasks, task, work)
    // If it was stopped for the restore, it has waited for this.
    const isRestarted = await pauses.resume(job.serverId, restore.jobId)
    if (phase === 'undone') await ends.undone(job, restore)
    else await ends.restored(job, restore, { ...(report ?? NOTHING), isRestarted })
  }

  async function onEnd(trx: Trx, { serverId, actor, input }: JobFacts<FinishInput>, { error }: BadEnd): Promise<void> {
    const row = await lockServer(trx, serverId)
    const known = row && unfinishedOf(row)
    if (error?.code !== 'restore_unfinished' || !known) return
    await ends.stopped(trx, actor, serverId, { ...known, ...(stops.get(serverId) ?? {}), input: input.restore })
    stops.delete(serverId)
  }

  /** Why it stopped this time, between the failure and the transaction that records it. */
  const stops = new Map<string, StoppedRestore>()

  jobs.register<FinishInput>(store.FINISH_RESTORE, {
    cancellable: false,
    atOnce: 4,
    retryAfterMs: (error, attempt) =>
      !isFailure(error) || isFailure(error, 'server_busy') || isFailure(error, 'agent_unreachable')
        ? backOffMs(attempt)
        : null,
    async run(job) {
      try {
        await run(job)
      } catch (error) {
        const stopped = isFailure(error, 'restore_unfinished') ? await stoppedOn(job.serverId) : null
        if (stopped) stops.set(job.serverId, stopped)
        throw error
      }
    },
    onEnd,
  })

  async function reconcileOne(serverId: string, stopped: StoppedRestore | null): Promise<void> {
    await transact(db, {}, async (trx) => {
      const row = await lockServer(trx, serverId)
      // Of a server that was put aside the agent knows nothing until it is brought back.
      if (row?.status !== 'ready' || (await store.activeJobs(trx, serverId, store.RESTORES)).length > 0) return
      const known = unfinishedOf(row)
      if (known?.jobId === stopped?.jobId) return
      if (stopped) await ends.stopped(trx, SYSTEM, serverId, { ...stopped, input: null })
      else await store.setUnfinishedRestore(trx, serverId, null)
    })
  }

  /** Once it has ended on disk, only a job that has not ended yet can want to know how. */
  async function forgetRecorded(serverId: string): Promise<void> {
    const ended = await agent.backups.endedRestores({ serverId })
    if (ended.length === 0) return
    const isWanted = await transact(db, {}, async (trx) => {
      await lockServer(trx, serverId)
      return (await store.activeJobs(trx, serverId, store.RESTORES)).length > 0
    })
    if (!isWanted) for (const jobId of ended) await agent.backups.forgetRestore({ serverId, jobId })
  }

  return {
    async start(actor, serverId, direction) {
      requireReady(await requireServer(db, actor, serverId))
      const askedBefore = await store.countJobs(db, serverId, store.FINISH_RESTORE)
      const stopped = await stoppedOn(serverId)
      if (!stopped) throw noneStopped()
      return transact(db, actor, async (trx) => {
        const row = await lockReadyServer(trx, actor, serverId)
        if ((await store.activeJobs(trx, serverId, store.RESTORES)).length > 0)
          throw fail('server_busy', 'The restore is already being finished, or has not ended yet.')
        const known = unfinishedOf(row)
        // The row may not know it yet. Where somebody has asked to finish it since we looked at the disk, it is too late.
        const isLate = (await store.countJobs(trx, serverId, store.FINISH_RESTORE)) !== askedBefore
        if (known?.jobId !== stopped.jobId && isLate) throw noneStopped()
        const restore = (known?.jobId === stopped.jobId ? known.input : null) ?? unknownRestore(serverId, stopped)
        const input: FinishInput = { direction, restore }
        const job = await jobs.enqueue(trx, actor, { kind: store.FINISH_RESTORE, serverId, input })
        const properties = { jobId: job.id, kind: store.FINISH_RESTORE, direction, restoreJobId: stopped.jobId }
        await activity.record(trx, actor, 'job.started', serverId, properties)
        return { ...presentJob(job), serverId }
      })
    },

    async reconcile() {
      for (const { id, unfinished_restore } of await store.restoresOfServers(db)) {
        const stopped = await stoppedOn(id)
        if (stopped || unfinished_restore !== null) await reconcileOne(id, stopped)
        await forgetRecorded(id).catch((error: unknown) => {
          log.warn({ err: error, serverId: id }, 'what is left of an ended restore could not be removed')
        })
      }
      await pauses.reconcile()
    },
  }
}

const NOTHING = { filesRestored: 0, filesKept: 0, bytesRestored: 0, displaced: 0 }

const noneStopped = () => fail('not_found', 'No restore into this server has stopped in the middle.')

/** Of a restore that only the agent still knows. */
function unknownRestore(serverId: string, { jobId, backupId }: StoppedRestore): Restore {
  return { jobId, backupId, sourceServerId: serverId, mode: 'replace', paths: null, safetyBackupId: null }
}

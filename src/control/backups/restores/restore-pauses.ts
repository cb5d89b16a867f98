// A restore into a server whose game runs stops the game first, and starts it again however it ends, but for one that stops
// in the middle. That the game is to be started again is on the agent's disk, so it outlives the job and the service.
import type { Logger } from 'pino'
import type { Agent } from '../../../contract/agent.ts'
import { isFailure } from '../../../contract/errors.ts'
import { lockServer } from '../../db/lock-server.ts'
import type { Db } from '../../db/tables.ts'
import { transact } from '../../db/transact.ts'
import { originOf } from '../../http/actor.ts'
import { runAgentTask } from '../../jobs/agent-task.ts'
import type { JobContext } from '../../jobs/runner.ts'
import { findServer } from '../../servers/service.ts'
import * as store from '../store.ts'

export interface RestorePauses {
  /** Resolves once nothing of the game runs. Safe to repeat. */
  pause(job: JobContext<unknown>): Promise<void>
  /** Whether the game was started again. Safe to repeat; what cannot be done now is done by `reconcile`. */
  resume(serverId: string, jobId: string): Promise<boolean>
  /** Starts what is paused for a job that is no longer there to do it. At the start, and every minute. */
  reconcile(): Promise<void>
}

export function createRestorePauses(deps: {
  db: Db
  agent: Pick<Agent, 'tasks' | 'games'>
  log: Logger
}): RestorePauses {
  const { db, agent, log } = deps

  async function resume(serverId: string, jobId: string): Promise<boolean> {
    // One that is on its way out is not started for a last moment.
    if ((await findServer(db, serverId))?.status !== 'ready') return false
    return await agent.games.resume({ serverId, jobId })
  }

  /** Nobody is at it, and nobody has to choose how it ends. */
  const isAbandoned = (serverId: string) =>
    transact(db, {}, async (trx) => {
      const row = await lockServer(trx, serverId)
      if (row?.status !== 'ready' || row.unfinished_restore !== null) return false
      return (await store.activeJobs(trx, serverId, store.RESTORES)).length === 0
    })

  async function attempt(serverId: string, jobId: string): Promise<boolean> {
    try {
      return await resume(serverId, jobId)
    } catch (error) {
      // A restore that has stopped in the middle keeps it down.
      if (!isFailure(error, 'server_busy')) log.error({ err: error, serverId }, 'a paused game could not be started')
      return false
    }
  }

  return {
    async pause(job) {
      const { jobId, attempt: number, actor } = job
      const task = { ...job, jobId: `${jobId}.pause.${number}` }
      await runAgentTask(agent.tasks, task, { kind: 'games.pause', jobId, origin: originOf(actor) })
    },
    resume: attempt,
    async reconcile() {
      for (const { serverId, jobId } of await agent.games.paused())
        if (await isAbandoned(serverId)) await attempt(serverId, jobId)
    },
  }
}

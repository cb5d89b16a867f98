// Installing the game of a server: a job here, a task on the agent. What is installed is read when the job runs, so no value of
// a variable is kept with it.
import type { Agent } from '../../contract/agent.ts'
import { fail } from '../../contract/errors.ts'
import type { InstallRequest } from '../../contract/games/install-operations.ts'
import type { Template } from '../../contract/games/template-format.ts'
import type { Job } from '../../contract/jobs.ts'
import { resolveTemplate } from '../../templates/resolve.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Db, ServerRow } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, requireScope } from '../http/actor.ts'
import { runAgentTask } from '../jobs/agent-task.ts'
import type { JobContext, Jobs } from '../jobs/runner.ts'
import { activeJobsOf, presentJob } from '../jobs/store.ts'
import type { Templates } from '../templates/service.ts'
import {
  findServer,
  found,
  lockReadyServer,
  requireFinishedRestore,
  requireReadyServer,
  requireStopped,
} from './access.ts'
import { gameLimitsOf, serverFactsOf } from './launch.ts'
import type { StartWishes } from './start-wishes.ts'
import { variablesOf } from './variables.ts'

const KIND = 'install'
const AT_ONCE = 4

interface InstallInput {
  wipe: boolean
  /** The job that starts the game afterwards; null where nobody asked for that. Absent in what older versions left. */
  startJobId?: string | null
}

export interface Installs {
  start(actor: Actor, serverId: string, request: InstallRequest): Promise<Job>
  /** Throws `server_busy` where one is under way, or about to be. */
  requireNone(serverId: string): Promise<void>
}

export function createInstalls(deps: {
  db: Db
  agent: Pick<Agent, 'tasks'>
  activity: Activity
  jobs: Jobs
  templates: Pick<Templates, 'find'>
  wishes: Pick<StartWishes, 'make' | 'grant' | 'drop'>
}): Installs {
  const { db, agent, activity, jobs, wishes } = deps

  async function templateOf({ game }: ServerRow): Promise<Template> {
    const template = game === null ? undefined : await deps.templates.find(game)
    if (!template)
      throw fail('install_failed', 'The server has no template, so nothing says how its game is installed. Choose one.')
    return template
  }

  jobs.register<InstallInput>(KIND, {
    cancellable: true,
    atOnce: AT_ONCE,
    async run(job: JobContext<InstallInput>) {
      const row = found(await findServer(db, job.serverId))
      const { launch, install: steps } = resolveTemplate(await templateOf(row), variablesOf(row), serverFactsOf(row))
      const { wipe, startJobId = null } = job.input
      const limits = gameLimitsOf(row)
      const result = await runAgentTask(agent.tasks, job, { kind: 'games.install', launch, limits, steps, wipe })
      await transact(db, {}, async (trx) => {
        await lockServer(trx, job.serverId)
        const properties = { jobId: job.jobId, game: row.game, wipe, ...result }
        await activity.record(trx, job.actor, 'server.installed', job.serverId, properties)
        if (startJobId !== null) await wishes.grant(trx, startJobId)
        await job.complete(trx, result)
      })
    },
    async onEnd(trx, { actor, serverId, jobId, input }, { status, error }) {
      if (input.startJobId) await wishes.drop(trx, serverId, input.startJobId)
      if (status === 'cancelled') return
      await activity.record(trx, actor, 'job.failed', serverId, { jobId, kind: KIND, error })
    },
  })

  return {
    async start(actor, serverId, { wipe = false, start = false }) {
      if (start) requireScope(actor, 'power:write')
      await templateOf(await requireReadyServer(db, actor, serverId))
      return transact(db, actor, async (trx) => {
        const row = await lockReadyServer(trx, actor, serverId)
        requireFinishedRestore(row)
        requireStopped(row)
        await jobs.requireRoom(trx, serverId, { wipe })
        const startJobId = start ? await wishes.make(trx, actor, serverId) : null
        const job = await jobs.enqueue(trx, actor, { kind: KIND, serverId, input: { wipe, startJobId } })
        await activity.record(trx, actor, 'job.started', serverId, { jobId: job.id, kind: KIND, wipe, start })
        return presentJob(job)
      })
    },

    async requireNone(serverId) {
      const active = await activeJobsOf(db, serverId)
      if (active.some(({ kind }) => kind === KIND)) throw fail('server_busy', 'The server is being installed.')
    },
  }
}

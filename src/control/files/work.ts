// Packing, unpacking and pulling: jobs here, tasks on the agent.
import type { ActivityEvent } from '../../contract/activity.ts'
import type { FilesWork } from '../../contract/agent/agent-files.ts'
import type { Agent } from '../../contract/agent.ts'
import { ARCHIVE_FORMATS, type ArchiveFormat } from '../../contract/files/files.ts'
import type { Job } from '../../contract/jobs.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Db } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { runAgentTask } from '../jobs/agent-task.ts'
import type { JobContext, Jobs } from '../jobs/runner.ts'
import { presentJob } from '../jobs/store.ts'
import { lockReadyServer, requireFinishedRestore } from '../servers/service.ts'
import { checkFilesWork } from './work-checks.ts'

export interface FileWork {
  pack(actor: Actor, serverId: string, request: PackRequest): Promise<Job>
  unpack(
    actor: Actor,
    serverId: string,
    request: { path: string; directory?: string; overwrite?: boolean },
  ): Promise<Job>
  pull(
    actor: Actor,
    serverId: string,
    request: { url: string; directory?: string; name?: string; overwrite?: boolean },
  ): Promise<Job>
}

export interface PackRequest {
  root?: string
  files: string[]
  format?: ArchiveFormat
  target?: string
}

const KINDS = { pack: 'file.packed', unpack: 'file.unpacked', pull: 'file.pulled' } as const satisfies Record<
  string,
  ActivityEvent
>
type Kind = keyof typeof KINDS

const AT_ONCE = 4

export function createFileWork(deps: {
  db: Db
  agent: Pick<Agent, 'tasks'>
  activity: Activity
  jobs: Jobs
}): FileWork {
  const { db, agent, activity, jobs } = deps

  for (const [kind, event] of Object.entries(KINDS) as [Kind, ActivityEvent][]) {
    jobs.register<FilesWork>(kind, {
      cancellable: true,
      // Once the first thing of an archive has moved, the rest follows, whoever has asked for its end meanwhile.
      settlesCancel: kind === 'unpack',
      atOnce: AT_ONCE,
      async run(job: JobContext<FilesWork>) {
        const result = await runAgentTask(agent.tasks, job, job.input)
        await transact(db, {}, async (trx) => {
          await lockServer(trx, job.serverId)
          await activity.record(trx, job.actor, event, job.serverId, {
            jobId: job.jobId,
            ...activityProperties(job.input),
            result,
          })
          await job.complete(trx, result)
        })
      },
      async onEnd(trx, job, end) {
        if (end.status === 'cancelled') return
        await activity.record(trx, job.actor, 'job.failed', job.serverId, { jobId: job.jobId, kind, error: end.error })
      },
    })
  }

  async function start(actor: Actor, serverId: string, kind: Kind, work: FilesWork): Promise<Job> {
    await checkFilesWork(serverId, work)
    return transact(db, actor, async (trx) => {
      requireFinishedRestore(await lockReadyServer(trx, actor, serverId))
      await jobs.requireRoom(trx, serverId, work)
      const row = await jobs.enqueue(trx, actor, { kind, serverId, input: work })
      await activity.record(trx, actor, 'job.started', serverId, { jobId: row.id, kind, ...activityProperties(work) })
      return presentJob(row)
    })
  }

  return {
    pack: (actor, serverId, { root = '/', files, target, format = formatOf(target) }) =>
      start(actor, serverId, 'pack', { kind: 'files.pack', root, files, format, ...(target ? { target } : {}) }),
    unpack: (actor, serverId, { path, directory = parentOf(path), overwrite = false }) =>
      start(actor, serverId, 'unpack', { kind: 'files.unpack', path, directory, overwrite }),
    pull: (actor, serverId, { directory = '/', ...rest }) =>
      start(actor, serverId, 'pull', { kind: 'files.pull', directory, ...rest }),
  }
}

/** What an entry says of the work: what was asked for, without the credentials that an address may hold. */
function activityProperties(work: FilesWork): object {
  const { kind: _, ...asked } = work
  if (work.kind !== 'files.pull') return asked
  const url = URL.parse(work.url)
  return { ...asked, url: url ? url.origin + url.pathname : null }
}

/** What the name of the target asks for; zip, which opens everywhere, where it asks for nothing. */
function formatOf(target: string | undefined): ArchiveFormat {
  return ARCHIVE_FORMATS.find((format) => target?.endsWith(`.${format}`)) ?? 'zip'
}

const parentOf = (path: string) => path.replace(/\/+$/, '').replace(/[^/]*$/, '') || '/'

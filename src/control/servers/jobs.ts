// The jobs of a server, as its owner sees them.
import { fail } from '../../contract/errors.ts'
import type { Job, JobStatus } from '../../contract/jobs.ts'
import type { Page } from '../../contract/schema.ts'
import type { Activity } from '../activity/service.ts'
import type { Changes } from '../db/row-changes.ts'
import type { Db, JobRow } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { type Cursors, pageOf, pageRequest } from '../http/paging.ts'
import { followRow } from '../http/streams/state-stream.ts'
import type { Jobs } from '../jobs/runner.ts'
import { findJob, listJobRows, presentJob } from '../jobs/store.ts'
import { lockVisibleServer, requireServer } from './access.ts'

export interface ServerJobs {
  list(
    actor: Actor,
    serverId: string,
    query: { limit?: number; cursor?: string; status?: JobStatus },
  ): Promise<Page<Job>>
  read(actor: Actor, serverId: string, jobId: string): Promise<Job>
  /** The job each time something about it changes, until it has ended; an empty step is a sign of life. */
  follow(actor: Actor, serverId: string, jobId: string, signal: AbortSignal): AsyncGenerator<Job | null>
  cancel(actor: Actor, serverId: string, jobId: string): Promise<Job>
}

export function createServerJobs(deps: {
  db: Db
  jobs: Jobs
  activity: Activity
  changes: Changes
  cursors: Cursors
}): ServerJobs {
  const { db, jobs, activity, changes, cursors } = deps

  async function requireJob(handle: Db, serverId: string, jobId: string): Promise<JobRow> {
    const row = await findJob(handle, serverId, jobId)
    if (!row) throw fail('not_found', 'No such job.')
    return row
  }

  return {
    async list(actor, serverId, query) {
      await requireServer(db, actor, serverId)
      const listName = `jobs ${serverId}`
      const request = pageRequest(cursors, listName, query)
      const before = request.after ? String(request.after[0]) : null
      const filter = { before, limit: request.limit + 1, ...(query.status ? { status: query.status } : {}) }
      const rows = await listJobRows(db, serverId, filter)
      return pageOf(rows, request, presentJob, (row) => cursors.encode(listName, [row.id]))
    },

    async read(actor, serverId, jobId) {
      await requireServer(db, actor, serverId)
      return presentJob(await requireJob(db, serverId, jobId))
    },

    async *follow(actor, serverId, jobId, signal) {
      await requireServer(db, actor, serverId)
      using changed = changes.watch(jobId)
      const first = await requireJob(db, serverId, jobId)
      const read = () => findJob(db, serverId, jobId)
      for await (const row of followRow(first, { changed, read, signal })) yield row && presentJob(row)
    },

    cancel: (actor, serverId, jobId) =>
      transact(db, actor, async (trx) => {
        await lockVisibleServer(trx, actor, serverId)
        const row = await requireJob(trx, serverId, jobId)
        await jobs.cancel(trx, row)
        await activity.record(trx, actor, 'job.cancelled', serverId, { jobId, kind: row.kind })
        return presentJob(await requireJob(trx, serverId, jobId))
      }),
  }
}

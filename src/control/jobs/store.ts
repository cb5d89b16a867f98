import { sql } from 'kysely'
import { JOB_INPUT_KEPT_BYTES, JOB_RESULT_MAX_BYTES } from '../../contract/fixed-limits.ts'
import type { Job, Progress, WorkError } from '../../contract/jobs.ts'
import { jsonWithin } from '../../kit/shorten.ts'
import { iso, isoOrNull } from '../../kit/time.ts'
import { DELETE_BATCH, deleteInBatches } from '../db/delete-batches.ts'
import type { Db, JobRow, Trx } from '../db/tables.ts'

export const NO_PROGRESS: Progress = { filesDone: 0, filesTotal: null, bytesDone: 0, bytesTotal: null }

export async function insertJob(trx: Trx, row: JobRow): Promise<void> {
  await trx.insertInto('jobs').values(row).execute()
}

export function findJob(db: Db, serverId: string, jobId: string): Promise<JobRow | undefined> {
  return db.selectFrom('jobs').selectAll().where('server_id', '=', serverId).where('id', '=', jobId).executeTakeFirst()
}

export function jobStatus(db: Db, jobId: string): Promise<Pick<JobRow, 'status'> | undefined> {
  return db.selectFrom('jobs').select('status').where('id', '=', jobId).executeTakeFirst()
}

export function listJobRows(
  db: Db,
  serverId: string,
  filter: { before: string | null; status?: JobRow['status']; limit: number },
): Promise<JobRow[]> {
  let query = db
    .selectFrom('jobs')
    .selectAll()
    .where('server_id', '=', serverId)
    .orderBy('id', 'desc')
    .limit(filter.limit)
  if (filter.before !== null) query = query.where('id', '<', filter.before)
  if (filter.status) query = query.where('status', '=', filter.status)
  return query.execute()
}

/** The oldest due job of the first server, in the order of their ids, that has one of this kind. */
export function firstDue(
  db: Db,
  { kind, now, afterServer }: { kind: string; now: number; afterServer?: string },
): Promise<JobRow | undefined> {
  let query = db.selectFrom('jobs').selectAll().where('status', '=', 'queued').where('kind', '=', kind)
  if (afterServer !== undefined) query = query.where('server_id', '>', afterServer)
  return query.where('due_at', '<=', now).orderBy('server_id').orderBy('id').limit(1).executeTakeFirst()
}

/** Queued or running. */
export function activeJobsOf(db: Db, serverId: string): Promise<JobRow[]> {
  const ofServer = db.selectFrom('jobs').selectAll().where('server_id', '=', serverId)
  return ofServer.where('status', 'in', ['queued', 'running']).execute()
}

export async function nextDueAt(db: Db, after: number): Promise<number | null> {
  const queued = db.selectFrom('jobs').select('due_at').where('status', '=', 'queued').where('due_at', '>', after)
  return (await queued.orderBy('due_at').limit(1).executeTakeFirst())?.due_at ?? null
}

/** Takes a queued job for this process. Answers false if somebody else was quicker. */
export async function claimJob(db: Db, id: string, owner: string, now: number, leaseMs: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('jobs')
    .set((set) => ({
      status: 'running',
      owner,
      lease_until: now + leaseMs,
      started_at: set.fn.coalesce('started_at', set.val(now)),
      attempts: set('attempts', '+', 1),
    }))
    .where('id', '=', id)
    .where('status', '=', 'queued')
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function renewLeases(db: Db, owner: string, ids: readonly string[], until: number): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('jobs')
    .set({ lease_until: until })
    .where('owner', '=', owner)
    .where('status', '=', 'running')
    .where('id', 'in', [...ids])
    .execute()
}

/** What is said to run. */
export function runningJobs(db: Db): Promise<JobRow[]> {
  return db.selectFrom('jobs').selectAll().where('status', '=', 'running').orderBy('id').execute()
}

/** Puts a job that the process went down with back into the queue. */
export async function requeueCrashed(trx: Trx, id: string, crashes: number, later?: Postponement): Promise<void> {
  await trx
    .updateTable('jobs')
    .set({
      status: 'queued',
      owner: null,
      lease_until: null,
      crashes,
      ...(later ? { due_at: later.dueAt, error: JSON.stringify(later.error) } : {}),
    })
    .where('id', '=', id)
    .execute()
}

export interface Postponement {
  dueAt: number
  error: WorkError
}

/** How many jobs of a server have not ended, and how much they were asked for. */
export async function unfinishedOf(trx: Trx, serverId: string): Promise<{ count: number; bytes: number }> {
  const { count, bytes } = await trx
    .selectFrom('jobs')
    .select(({ fn }) => [fn.countAll<number>().as('count'), sql<number>`sum(octet_length(input))`.as('bytes')])
    .where('server_id', '=', serverId)
    .where('status', 'in', ['queued', 'running'])
    .executeTakeFirstOrThrow()
  return { count: Number(count), bytes: Number(bytes ?? 0) }
}

/** Large ones are of no use once nobody can run the job again. */
const keptInput = sql<string>`case when octet_length(input) <= ${sql.lit(JOB_INPUT_KEPT_BYTES)} then input else '{}' end`

/** Puts jobs back into the queue whose end could not be written. `before` is the time at which a lease counts as over. */
export async function requeueOrphans(db: Db, before: number): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ status: 'queued', owner: null, lease_until: null })
    .where('status', '=', 'running')
    .where('lease_until', '<=', before)
    .execute()
}

export async function saveProgress(db: Db, id: string, progress: Progress): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ progress: JSON.stringify(progress) })
    .where('id', '=', id)
    .where('status', '=', 'running')
    .execute()
}

export async function finishJob(
  db: Db,
  id: string,
  end: {
    status: 'completed' | 'failed' | 'cancelled'
    result?: unknown
    error?: WorkError
    progress?: Progress | undefined
    at: number
  },
): Promise<void> {
  await db
    .updateTable('jobs')
    .set({
      status: end.status,
      result: end.result == null ? null : jsonWithin(end.result as object, JOB_RESULT_MAX_BYTES),
      input: keptInput,
      error: end.error ? JSON.stringify(end.error) : null,
      ...(end.progress ? { progress: JSON.stringify(end.progress) } : {}),
      finished_at: end.at,
      owner: null,
      lease_until: null,
    })
    .where('id', '=', id)
    .execute()
}

export async function requeueJob(db: Db, id: string, dueAt: number, error: WorkError | null): Promise<void> {
  await db
    .updateTable('jobs')
    .set({
      status: 'queued',
      due_at: dueAt,
      error: error ? JSON.stringify(error) : null,
      owner: null,
      lease_until: null,
    })
    .where('id', '=', id)
    // Its end may have been committed though the answer of the database was lost.
    .where('status', '=', 'running')
    .execute()
}

/** Answers false if the job runs or has ended. */
export async function dropQueued(trx: Trx, id: string): Promise<boolean> {
  const queued = trx.deleteFrom('jobs').where('id', '=', id).where('status', '=', 'queued')
  return (await queued.executeTakeFirst()).numDeletedRows > 0n
}

export async function makeDue(trx: Trx, id: string, now: number): Promise<void> {
  await trx.updateTable('jobs').set({ due_at: now }).where('id', '=', id).where('due_at', '>', now).execute()
}

/** Answers false if the job runs or has ended. */
export async function cancelQueued(trx: Trx, id: string, at: number): Promise<boolean> {
  const queued = trx
    .updateTable('jobs')
    .set({ status: 'cancelled', finished_at: at, input: keptInput })
    .where('id', '=', id)
    .where('status', '=', 'queued')
  return (await queued.executeTakeFirst()).numUpdatedRows > 0n
}

export async function isToBeCancelled(db: Db, id: string): Promise<boolean> {
  const asked = db.selectFrom('jobs').select('cancel').where('id', '=', id)
  return (await asked.executeTakeFirst())?.cancel === 1
}

/** One that waits for its next attempt makes it at once, and finds out what is left to cancel. False if it does not wait. */
export async function askQueued(trx: Trx, id: string): Promise<boolean> {
  const asked = trx
    .updateTable('jobs')
    .set({ cancel: 1, due_at: 0 })
    .where('id', '=', id)
    .where('status', '=', 'queued')
  return (await asked.executeTakeFirst()).numUpdatedRows > 0n
}

/** Answers false if the job does not run. */
export async function askToCancel(trx: Trx, id: string): Promise<boolean> {
  const running = trx.updateTable('jobs').set({ cancel: 1 }).where('id', '=', id).where('status', '=', 'running')
  return (await running.executeTakeFirst()).numUpdatedRows > 0n
}

export function purgeFinished(db: Db, before: number): Promise<void> {
  const old = db.selectFrom('jobs').select('id').where('finished_at', '<', before).limit(DELETE_BATCH)
  return deleteInBatches(() => db.deleteFrom('jobs').where('id', 'in', old).executeTakeFirst())
}

export function presentJob(row: JobRow): Job {
  return {
    id: row.id,
    kind: row.kind,
    status: row.status,
    progress: JSON.parse(row.progress),
    error: row.error === null ? null : JSON.parse(row.error),
    result: row.result === null ? null : JSON.parse(row.result),
    createdAt: iso(row.created_at),
    startedAt: isoOrNull(row.started_at),
    finishedAt: isoOrNull(row.finished_at),
  }
}

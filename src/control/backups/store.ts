import type { Progress } from '../../contract/jobs.ts'
import { countRows } from '../db/count-rows.ts'
import type { BackupRow, Db, JobRow, RehearsalLogRow, ServerRow, Trx } from '../db/tables.ts'
import { factsOf } from '../jobs/runner.ts'

/** A backup with what its job says of its progress. */
export interface ShownBackup extends BackupRow {
  job_progress: string | null
}

const ACTIVE = ['queued', 'running'] as const

/** Those that are not deleted for their owner. */
const kept = (db: Db) => db.selectFrom('backups').where('deleted_at', 'is', null)

const keptOf = (db: Db, serverId: string) => kept(db).where('server_id', '=', serverId)

const shown = (db: Db) =>
  db
    .selectFrom('backups')
    .leftJoin('jobs', 'jobs.id', 'backups.job_id')
    .selectAll('backups')
    .select('jobs.progress as job_progress')
    .where('backups.deleted_at', 'is', null)

export function findBackup(db: Db, serverId: string, backupId: string): Promise<ShownBackup | undefined> {
  return shown(db).where('backups.server_id', '=', serverId).where('backups.id', '=', backupId).executeTakeFirst()
}

/** Also one that is deleted for its owner. */
export function findRow(db: Db, backupId: string): Promise<BackupRow | undefined> {
  return db.selectFrom('backups').selectAll().where('id', '=', backupId).executeTakeFirst()
}

/** Newest first. */
export function listBackupRows(
  db: Db,
  serverId: string,
  filter: { before: string | null; status?: BackupRow['status']; limit: number },
): Promise<ShownBackup[]> {
  let query = shown(db).where('backups.server_id', '=', serverId).orderBy('backups.id', 'desc').limit(filter.limit)
  if (filter.before !== null) query = query.where('backups.id', '<', filter.before)
  if (filter.status) query = query.where('backups.status', '=', filter.status)
  return query.execute()
}

export async function insertBackup(trx: Trx, row: BackupRow): Promise<void> {
  await trx.insertInto('backups').values(row).execute()
}

export async function updateBackup(db: Db, id: string, change: Partial<BackupRow>): Promise<void> {
  await db.updateTable('backups').set(change).where('id', '=', id).execute()
}

/** So that whoever finds one elsewhere later knows that it was deleted, and not lost. */
export async function noteDeleted(trx: Trx, ids: readonly string[], now: number): Promise<void> {
  for (const id of ids)
    await trx
      .insertInto('deleted_backups')
      .values({ id, deleted_at: now })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute()
}

export async function removeRow(trx: Trx, id: string, now: number): Promise<void> {
  await noteDeleted(trx, [id], now)
  await trx.deleteFrom('rehearsal_logs').where('backup_id', '=', id).execute()
  await trx.deleteFrom('backups').where('id', '=', id).execute()
}

export async function removeRowsOf(trx: Trx, serverId: string, now: number): Promise<void> {
  const rows = await trx.selectFrom('backups').select('id').where('server_id', '=', serverId).execute()
  await noteDeleted(
    trx,
    rows.map(({ id }) => id),
    now,
  )
  await trx.deleteFrom('rehearsal_logs').where('server_id', '=', serverId).execute()
  await trx.deleteFrom('backups').where('server_id', '=', serverId).execute()
}

/** In place of that of the rehearsal before. */
export async function keepRehearsalLog(trx: Trx, row: RehearsalLogRow): Promise<void> {
  const { log } = row
  await trx
    .insertInto('rehearsal_logs')
    .values(row)
    .onConflict((conflict) => conflict.column('backup_id').doUpdateSet({ log }))
    .execute()
}

export async function findRehearsalLog(db: Db, backupId: string): Promise<string[]> {
  const found = await db.selectFrom('rehearsal_logs').select('log').where('backup_id', '=', backupId).executeTakeFirst()
  return found ? JSON.parse(found.log) : []
}

/** What counts against the limit of a server: not what failed, and not what a restore has taken for safety. */
export const countAgainstLimit = (trx: Trx, serverId: string): Promise<number> =>
  countRows(keptOf(trx, serverId).where('status', '!=', 'failed').where('origin', '!=', 'safety'))

/** Queued or running, deleted meanwhile or not: the work is still to end. */
export function activeOf(db: Db, serverId: string): Promise<BackupRow[]> {
  return db
    .selectFrom('backups')
    .selectAll()
    .where('server_id', '=', serverId)
    .where('status', 'in', ACTIVE)
    .orderBy('id')
    .execute()
}

export function completedOf(db: Db, serverId: string): Promise<BackupRow[]> {
  return keptOf(db, serverId).selectAll().where('status', '=', 'completed').orderBy('id', 'desc').execute()
}

export const countLocked = (db: Db, serverId: string): Promise<number> =>
  countRows(keptOf(db, serverId).where('locked', '=', 1))

export const hasLocked = async (db: Db, serverId: string): Promise<boolean> => (await countLocked(db, serverId)) > 0

export async function totalsOf(db: Db, serverId: string): Promise<{ count: number; storedBytes: number }> {
  const { count, stored } = await keptOf(db, serverId)
    .select(
      (of) => [of.fn.countAll<number>().as('count'), of.fn.sum<number | null>('stored_bytes').as('stored')] as const,
    )
    .executeTakeFirstOrThrow()
  return { count: Number(count), storedBytes: Number(stored ?? 0) }
}

export function allRows(db: Db): Promise<BackupRow[]> {
  return db.selectFrom('backups').selectAll().orderBy('id').execute()
}

/** Said to be under way, and no job is on it: what a restored database or a purged job leaves. */
export function stranded(db: Db): Promise<BackupRow[]> {
  return db
    .selectFrom('backups')
    .leftJoin('jobs', 'jobs.id', 'backups.job_id')
    .selectAll('backups')
    .where('backups.status', 'in', ACTIVE)
    .where((where) => where.or([where('jobs.status', 'is', null), where('jobs.status', 'not in', ACTIVE)]))
    .execute()
}

const keptDamaged = (db: Db) => kept(db).where('damage', 'is not', null)

export const damaged = (db: Db): Promise<BackupRow[]> => keptDamaged(db).selectAll().execute()

export const countDamaged = (db: Db): Promise<number> => countRows(keptDamaged(db))

/** Failed, not deleted since, and the server has no newer one that is good. */
export function countUnresolvedFailures(db: Db): Promise<number> {
  const unresolved = db
    .selectFrom('backups as failed')
    .where('failed.status', '=', 'failed')
    .where('failed.deleted_at', 'is', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('backups as newer')
            .select('newer.id')
            .whereRef('newer.server_id', '=', 'failed.server_id')
            .whereRef('newer.id', '>', 'failed.id')
            .where('newer.status', '=', 'completed'),
        ),
      ),
    )
  return countRows(unresolved)
}

export async function countByStatus(db: Db): Promise<{ status: string; count: number }[]> {
  const rows = await kept(db)
    .select((of) => ['status', of.fn.countAll<number>().as('count')] as const)
    .groupBy('status')
    .execute()
  return rows.map(({ status, count }) => ({ status, count: Number(count) }))
}

/** Jobs of these kinds that are queued or running. */
export function activeJobs(db: Db, serverId: string, kinds: readonly string[]): Promise<JobRow[]> {
  return db
    .selectFrom('jobs')
    .selectAll()
    .where('server_id', '=', serverId)
    .where('kind', 'in', kinds)
    .where('status', 'in', ACTIVE)
    .execute()
}

export const countJobs = (db: Db, serverId: string, kind: string): Promise<number> =>
  countRows(db.selectFrom('jobs').where('server_id', '=', serverId).where('kind', '=', kind))

export const RESTORE = 'restore'
export const FINISH_RESTORE = 'restore.finish'
/** Jobs that change the files of a server as a whole. */
export const RESTORES = [RESTORE, FINISH_RESTORE] as const

export async function setUnfinishedRestore(trx: Trx, serverId: string, text: string | null): Promise<void> {
  await trx.updateTable('servers').set({ unfinished_restore: text }).where('id', '=', serverId).execute()
}

export function restoresOfServers(db: Db): Promise<Pick<ServerRow, 'id' | 'unfinished_restore'>[]> {
  return db.selectFrom('servers').select(['id', 'unfinished_restore']).where('status', '=', 'ready').execute()
}

/** What restores that are queued or running take their files from, into whichever server. */
export async function beingRestored(db: Db): Promise<Set<string>> {
  const jobs = await db
    .selectFrom('jobs')
    .selectAll()
    .where('kind', '=', RESTORE)
    .where('status', 'in', ACTIVE)
    .execute()
  return new Set(jobs.map((job) => (factsOf(job).input as { backupId: string }).backupId))
}

/** Whether a restore into another server takes its files from a backup of this one. */
export async function isRestoredElsewhere(db: Db, serverId: string): Promise<boolean> {
  const inUse = await beingRestored(db)
  if (inUse.size === 0) return false
  const mine = db
    .selectFrom('backups')
    .select('id')
    .where('server_id', '=', serverId)
    .where('id', 'in', [...inUse])
  const elsewhere = await mine.execute()
  const into = await activeJobs(db, serverId, [RESTORE])
  const here = new Set(into.map((job) => (factsOf(job).input as { backupId: string }).backupId))
  return elsewhere.some(({ id }) => !here.has(id))
}

export const progressOf = (text: string | null): Progress | null => (text === null ? null : JSON.parse(text))

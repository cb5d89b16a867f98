// What the database knows of the mirror: the state of each backup, and which place that is about.
import type { BackupRow, Db, Trx } from '../../db/tables.ts'

const UNSENT = ['pending', 'failed'] as const
const PLACE = 'offsite.place'
const HELD = 'offsite.held'

export type OffsiteRow = Pick<BackupRow, 'id' | 'server_id' | 'offsite_state'>

/** Those that can be in the mirror. */
const completed = (db: Db) => db.selectFrom('backups').where('status', '=', 'completed').where('deleted_at', 'is', null)

/**
 * What is known holds for one place: of another nothing is, and where there is none nothing is said. Backups from before
 * there was a mirror are still to be sent.
 */
export async function takeUpPlace(trx: Trx, place: string | null): Promise<void> {
  const known = await findValue(trx, PLACE)
  const unknown = { offsite_stored_at: null, offsite_error: null }
  if (place !== known) {
    await trx
      .updateTable('backups')
      .set({ offsite_state: null, ...unknown })
      .where('offsite_state', 'is not', null)
      .execute()
    await setValue(trx, PLACE, place)
    await setValue(trx, HELD, null)
  }
  if (place === null) return
  await trx
    .updateTable('backups')
    .set({ offsite_state: 'pending' })
    .where('status', '=', 'completed')
    .where('offsite_state', 'is', null)
    .execute()
}

/** By id, after `after`: all at once might be too many. */
export function listByState(
  db: Db,
  states: readonly NonNullable<BackupRow['offsite_state']>[],
  after: string,
  limit: number,
): Promise<OffsiteRow[]> {
  return completed(db)
    .select(['id', 'server_id', 'offsite_state'])
    .where('offsite_state', 'in', states)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** Of these, those that are as they were listed, with what is written. The server is locked. */
export function setState(
  trx: Trx,
  rows: readonly OffsiteRow[],
  change: Pick<BackupRow, 'offsite_state' | 'offsite_stored_at' | 'offsite_error'>,
): Promise<Pick<BackupRow, 'id' | 'name'>[]> {
  return trx
    .updateTable('backups')
    .set(change)
    .where(
      'id',
      'in',
      rows.map(({ id }) => id),
    )
    .where('status', '=', 'completed')
    .where('deleted_at', 'is', null)
    .returning(['id', 'name'])
    .execute()
}

export async function hasFailed(trx: Trx, serverId: string): Promise<boolean> {
  const found = await completed(trx)
    .select('id')
    .where('server_id', '=', serverId)
    .where('offsite_state', '=', 'failed')
    .limit(1)
    .executeTakeFirst()
  return found !== undefined
}

export interface Unsent {
  backups: number
  bytes: number
  /** When the oldest of them had completed. */
  oldestAt: number | null
}

export async function sumUnsent(db: Db): Promise<Unsent> {
  const { count, bytes, oldest } = await completed(db)
    .where('offsite_state', 'in', UNSENT)
    .select(
      (of) =>
        [
          of.fn.countAll<number>().as('count'),
          of.fn.sum<number | null>('stored_bytes').as('bytes'),
          of.fn.min<number | null>('completed_at').as('oldest'),
        ] as const,
    )
    .executeTakeFirstOrThrow()
  return { backups: Number(count), bytes: Number(bytes ?? 0), oldestAt: oldest === null ? null : Number(oldest) }
}

const IDS_AT_ONCE = 500

/**
 * Of these ids, those of backups that somebody has deleted here. One that is not known at all was not: the database may be
 * older than the mirror, or that of another service.
 */
export async function deletedAmong(db: Db, backupIds: readonly string[]): Promise<string[]> {
  const deleted: string[] = []
  for (let at = 0; at < backupIds.length; at += IDS_AT_ONCE) {
    const asked = backupIds.slice(at, at + IDS_AT_ONCE)
    const rows = await db.selectFrom('backups').select(['id', 'deleted_at']).where('id', 'in', asked).execute()
    const gone = await db.selectFrom('deleted_backups').select('id').where('id', 'in', asked).execute()
    // One that was recovered since is a backup like any other.
    const known = new Map(rows.map(({ id, deleted_at }) => [id, deleted_at !== null]))
    const noted = new Set(gone.map(({ id }) => id))
    deleted.push(...asked.filter((id) => known.get(id) ?? noted.has(id)))
  }
  return deleted
}

/** What was deleted longer ago than any mirror is without a service. */
export async function forgetDeleted(trx: Trx, before: number): Promise<void> {
  await trx.deleteFrom('deleted_backups').where('deleted_at', '<', before).execute()
}

/** Whether that is news. */
export async function setHeld(trx: Trx, isHeld: boolean): Promise<boolean> {
  const wasHeld = (await findValue(trx, HELD)) !== null
  if (wasHeld !== isHeld) await setValue(trx, HELD, isHeld ? 'yes' : null)
  return isHeld && !wasHeld
}

async function findValue(db: Db, key: string): Promise<string | null> {
  const found = await db.selectFrom('instance').select('value').where('key', '=', key).executeTakeFirst()
  return found?.value ?? null
}

async function setValue(trx: Trx, key: string, value: string | null): Promise<void> {
  if (value === null) {
    await trx.deleteFrom('instance').where('key', '=', key).execute()
    return
  }
  await trx
    .insertInto('instance')
    .values({ key, value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
    .execute()
}

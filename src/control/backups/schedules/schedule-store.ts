import type { Db, ScheduleRow, Trx } from '../../db/tables.ts'

export function findSchedule(db: Db, serverId: string, id: string): Promise<ScheduleRow | undefined> {
  const found = db.selectFrom('schedules').selectAll().where('server_id', '=', serverId).where('id', '=', id)
  return found.executeTakeFirst()
}

export function schedulesOf(db: Db, serverId: string): Promise<ScheduleRow[]> {
  return db.selectFrom('schedules').selectAll().where('server_id', '=', serverId).orderBy('id').execute()
}

/** Of servers that take changes: what a deleted one has missed runs once when it is brought back. */
export function dueSchedules(db: Db, now: number): Promise<ScheduleRow[]> {
  return db
    .selectFrom('schedules')
    .innerJoin('servers', 'servers.id', 'schedules.server_id')
    .selectAll('schedules')
    .where('servers.status', '=', 'ready')
    .where('schedules.next_run_at', '<=', now)
    .orderBy('schedules.next_run_at')
    .execute()
}

export async function insertSchedule(trx: Trx, row: ScheduleRow): Promise<void> {
  await trx.insertInto('schedules').values(row).execute()
}

export async function updateSchedule(db: Db, id: string, change: Partial<ScheduleRow>): Promise<void> {
  await db.updateTable('schedules').set(change).where('id', '=', id).execute()
}

/** Takes the run that is due. Answers false if somebody else was quicker, or it was changed meanwhile. */
export async function claimRun(trx: Trx, row: ScheduleRow, nextRunAt: number | null): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('schedules')
    .set({ next_run_at: nextRunAt })
    .where('id', '=', row.id)
    .where('next_run_at', '=', row.next_run_at)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function removeSchedule(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('schedules').where('id', '=', id).execute()
}

export async function removeSchedulesOf(trx: Trx, serverId: string): Promise<void> {
  await trx.deleteFrom('schedules').where('server_id', '=', serverId).execute()
}

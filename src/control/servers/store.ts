import { sql } from 'kysely'
import { containing } from '../db/containing.ts'
import { prepare } from '../db/prepare.ts'
import type { Db, ServerRow, Trx } from '../db/tables.ts'

const serverById = prepare((db, id: string) => db.selectFrom('servers').selectAll().where('id', '=', id))

export function findServer(db: Db, id: string): ServerRow | undefined | Promise<ServerRow | undefined> {
  return serverById(db, id)
}

export async function insertServer(trx: Trx, row: ServerRow): Promise<void> {
  await trx.insertInto('servers').values(row).execute()
}

/** Answers false if there is one of this id already. */
export async function insertServerIfAbsent(trx: Trx, row: ServerRow): Promise<boolean> {
  const insert = trx
    .insertInto('servers')
    .values(row)
    .onConflict((conflict) => conflict.column('id').doNothing())
  return ((await insert.executeTakeFirst()).numInsertedOrUpdatedRows ?? 0n) > 0n
}

export async function updateServer(trx: Trx, id: string, change: Partial<ServerRow>): Promise<void> {
  await trx.updateTable('servers').set(change).where('id', '=', id).execute()
}

export async function removeServerRow(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('servers').where('id', '=', id).execute()
}

export async function listServerIds(db: Db): Promise<string[]> {
  return (await db.selectFrom('servers').select('id').execute()).map((row) => row.id)
}

/** Newest first. `visible` narrows to the servers that a token can see. */
export function listServerRows(
  db: Db,
  filter: {
    before: string | null
    visible: '*' | ReadonlySet<string>
    isDeleted: boolean
    game?: string
    q?: string
    limit: number
  },
): Promise<ServerRow[]> {
  let query = db.selectFrom('servers').selectAll().orderBy('id', 'desc').limit(filter.limit)
  query = query.where('deleted_at', filter.isDeleted ? 'is not' : 'is', null)
  if (filter.before !== null) query = query.where('id', '<', filter.before)
  if (filter.visible !== '*') query = query.where('id', 'in', [...filter.visible])
  if (filter.game) query = query.where('game', '=', filter.game)
  if (filter.q) {
    const pattern = containing(filter.q)
    query = query.where(sql<boolean>`lower(name) like lower(${pattern}) escape '\\'`)
  }
  return query.execute()
}

export async function saveDiskUsage(db: Db, id: string, bytes: number, at: number): Promise<void> {
  await db.updateTable('servers').set({ disk_bytes: bytes, disk_measured_at: at }).where('id', '=', id).execute()
}

export async function saveGameState(db: Db, id: string, state: string): Promise<void> {
  await db.updateTable('servers').set({ game_state: state }).where('id', '=', id).execute()
}

export async function listReadyIds(db: Db): Promise<string[]> {
  return (await db.selectFrom('servers').select('id').where('status', '=', 'ready').execute()).map((row) => row.id)
}

/** Deleted, and their time to be brought back is over. */
export async function listExpiredIds(db: Db, now: number): Promise<string[]> {
  const deleted = db.selectFrom('servers').select('id').where('status', '=', 'deleted')
  return (await deleted.where('purge_at', '<=', now).execute()).map((row) => row.id)
}

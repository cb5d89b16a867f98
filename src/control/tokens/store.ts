import { countRows } from '../db/count-rows.ts'
import type { Db, TokenRow, Trx } from '../db/tables.ts'

export function findToken(db: Db, id: string): Promise<TokenRow | undefined> {
  return db.selectFrom('tokens').selectAll().where('id', '=', id).executeTakeFirst()
}

export async function insertToken(trx: Trx, row: TokenRow): Promise<void> {
  await trx.insertInto('tokens').values(row).execute()
}

export const countTokens = (db: Db): Promise<number> => countRows(db.selectFrom('tokens'))

/** Newest first, revoked ones left out. */
export function listTokenRows(db: Db, before: string | null, limit: number): Promise<TokenRow[]> {
  let query = db.selectFrom('tokens').selectAll().where('revoked_at', 'is', null).orderBy('id', 'desc').limit(limit)
  if (before !== null) query = query.where('id', '<', before)
  return query.execute()
}

/** Those that no token has made, newest first: the first one, the configured one, and rescued ones. */
export function listRootRows(db: Db): Promise<TokenRow[]> {
  const roots = db.selectFrom('tokens').selectAll().where('created_by', 'is', null)
  return roots.where('revoked_at', 'is', null).orderBy('id', 'desc').limit(100).execute()
}

/** Locks it, so that nobody revokes it meanwhile; undefined where it is revoked. */
export function lockToken(trx: Trx, id: string): Promise<TokenRow | undefined> {
  const unrevoked = trx.updateTable('tokens').set({ id }).where('id', '=', id).where('revoked_at', 'is', null)
  return unrevoked.returningAll().executeTakeFirst()
}

/** False where it is revoked already: of two calls at once only one is told that it did it. */
export async function markRevoked(trx: Trx, id: string, at: number): Promise<boolean> {
  const unrevoked = trx
    .updateTable('tokens')
    .set({ revoked_at: at })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
  return (await unrevoked.executeTakeFirst()).numUpdatedRows > 0n
}

export async function markUsed(db: Db, id: string, at: number): Promise<void> {
  await db.updateTable('tokens').set({ last_used_at: at }).where('id', '=', id).execute()
}

export async function missingServers(db: Db, ids: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('servers')
    .select('id')
    .where('id', 'in', [...ids])
    .execute()
  const found = new Set(rows.map((row) => row.id))
  return ids.filter((id) => !found.has(id))
}

/** Those that are not deleted, by name. */
export async function namedServers(db: Db, ids: readonly string[]): Promise<{ id: string; name: string }[]> {
  if (ids.length === 0) return []
  const named = db
    .selectFrom('servers')
    .select(['id', 'name'])
    .where('id', 'in', [...ids])
  return named.where('status', '=', 'ready').orderBy('name').orderBy('id').execute()
}

export async function revokedSince(db: Db, since: number): Promise<string[]> {
  const rows = await db.selectFrom('tokens').select('id').where('revoked_at', '>=', since).execute()
  return rows.map((row) => row.id)
}

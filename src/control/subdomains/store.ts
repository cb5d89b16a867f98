import type { Db, SubdomainRow, Trx } from '../db/tables.ts'

export function findSubdomain(db: Db, id: string): Promise<SubdomainRow | undefined> {
  return db.selectFrom('subdomains').selectAll().where('id', '=', id).executeTakeFirst()
}

export function findByName(db: Db, zone: string, name: string): Promise<SubdomainRow | undefined> {
  return db.selectFrom('subdomains').selectAll().where('zone', '=', zone).where('name', '=', name).executeTakeFirst()
}

/** One of another server that reads like this one. */
export function findLookalike(
  db: Db,
  zone: string,
  skeleton: string,
  serverId: string,
): Promise<SubdomainRow | undefined> {
  const alike = db.selectFrom('subdomains').selectAll().where('zone', '=', zone).where('skeleton', '=', skeleton)
  return alike.where('server_id', '!=', serverId).limit(1).executeTakeFirst()
}

export async function insertSubdomain(trx: Trx, row: SubdomainRow): Promise<void> {
  await trx.insertInto('subdomains').values(row).execute()
}

export async function updateSubdomain(db: Db, id: string, change: Partial<SubdomainRow>): Promise<void> {
  await db.updateTable('subdomains').set(change).where('id', '=', id).execute()
}

export async function removeSubdomain(trx: Trx, id: string): Promise<boolean> {
  const { numDeletedRows } = await trx.deleteFrom('subdomains').where('id', '=', id).executeTakeFirst()
  return numDeletedRows > 0n
}

export function listOfServer(
  db: Db,
  serverId: string,
  page: { before: string | null; limit: number } = { before: null, limit: 1_000_000 },
): Promise<SubdomainRow[]> {
  let query = db
    .selectFrom('subdomains')
    .selectAll()
    .where('server_id', '=', serverId)
    .orderBy('id', 'desc')
    .limit(page.limit)
  if (page.before !== null) query = query.where('id', '<', page.before)
  return query.execute()
}

export function listOfZone(db: Db, zone: string): Promise<SubdomainRow[]> {
  return db.selectFrom('subdomains').selectAll().where('zone', '=', zone).execute()
}

/** Makes concurrent requests for one server take turns, on either engine. */
export async function lockServer(trx: Trx, serverId: string): Promise<void> {
  await trx
    .updateTable('servers')
    .set((set) => ({ updated_at: set.ref('updated_at') }))
    .where('id', '=', serverId)
    .execute()
}

/** Until when the name is kept from this server; undefined where it is free. */
export async function heldUntil(
  db: Db,
  zone: string,
  name: string,
  serverId: string,
  now: number,
): Promise<number | undefined> {
  const held = db.selectFrom('held_names').select('until').where('zone', '=', zone).where('name', '=', name)
  return (await held.where('server_id', '!=', serverId).where('until', '>', now).executeTakeFirst())?.until
}

export async function holdName(
  trx: Trx,
  row: { zone: string; name: string; server_id: string; until: number },
): Promise<void> {
  await trx
    .insertInto('held_names')
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(['zone', 'name']).doUpdateSet({ server_id: row.server_id, until: row.until }),
    )
    .execute()
}

export async function purgeHeldNames(db: Db, now: number): Promise<void> {
  await db.deleteFrom('held_names').where('until', '<=', now).execute()
}

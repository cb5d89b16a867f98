import type { Db, ServerRow, SubdomainRow, Trx } from '../db/tables.ts'
import type { AddressedServer } from './records.ts'

export function findSubdomain(db: Db, id: string): Promise<SubdomainRow | undefined> {
  return db.selectFrom('subdomains').selectAll().where('id', '=', id).executeTakeFirst()
}

export function findByName(db: Db, zone: string, name: string): Promise<SubdomainRow | undefined> {
  return db.selectFrom('subdomains').selectAll().where('zone', '=', zone).where('name', '=', name).executeTakeFirst()
}

/** One of another server that reads like this one. */
export async function findLookalike(db: Db, zone: string, skeleton: string, serverId: string): Promise<boolean> {
  const alike = db.selectFrom('subdomains').select('id').where('zone', '=', zone).where('skeleton', '=', skeleton)
  return (await alike.where('server_id', '!=', serverId).limit(1).executeTakeFirst()) !== undefined
}

export interface WithServer {
  row: SubdomainRow
  server: AddressedServer
}

const withServer = (db: Db) =>
  db
    .selectFrom('subdomains')
    .innerJoin('servers', 'servers.id', 'subdomains.server_id')
    .leftJoin('templates', 'templates.id', 'servers.game')
    .selectAll('subdomains')
    .select(['servers.game as server_game', 'servers.port as server_port'])
    .select(['templates.srv as template_srv', 'templates.default_port as template_port'])

interface ServerColumns {
  server_game: string | null
  server_port: number | null
  template_srv: string | null
  template_port: number | null
}

function split({
  server_game: game,
  server_port: port,
  template_srv: srv,
  template_port: defaultPort,
  ...row
}: SubdomainRow & ServerColumns): WithServer {
  return { row, server: { game, port, template: { srv, defaultPort } } }
}

/** With what a template of somebody's own says of its address. */
export async function addressed(db: Db, { game, port }: Pick<ServerRow, 'game' | 'port'>): Promise<AddressedServer> {
  const own = db.selectFrom('templates').select(['srv', 'default_port as defaultPort'])
  const template = game === null ? undefined : await own.where('id', '=', game).executeTakeFirst()
  return { game, port, template: template ?? null }
}

export async function findWithServer(db: Db, id: string): Promise<WithServer | undefined> {
  const found = await withServer(db).where('subdomains.id', '=', id).executeTakeFirst()
  return found && split(found)
}

export async function listOfZone(db: Db, zone: string): Promise<WithServer[]> {
  return (await withServer(db).where('subdomains.zone', '=', zone).orderBy('subdomains.id').execute()).map(split)
}

export async function listZonesInUse(db: Db): Promise<string[]> {
  return (await db.selectFrom('subdomains').select('zone').distinct().execute()).map(({ zone }) => zone)
}

export async function insertSubdomain(trx: Trx, row: SubdomainRow): Promise<void> {
  await trx.insertInto('subdomains').values(row).execute()
}

export async function updateSubdomain(db: Db, id: string, change: Partial<SubdomainRow>): Promise<void> {
  await db.updateTable('subdomains').set(change).where('id', '=', id).execute()
}

/** Only if nobody has changed it since it was read. */
export async function updateIf(db: Db, read: SubdomainRow, change: Partial<SubdomainRow>): Promise<void> {
  const unchanged = db.updateTable('subdomains').set(change).where('id', '=', read.id)
  await unchanged.where('status', '=', read.status).where('updated_at', '=', read.updated_at).execute()
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

/** Makes requests for names in one zone take turns, so that two that look alike cannot pass each other. */
export async function lockZone(trx: Trx, zone: string): Promise<void> {
  await trx
    .insertInto('instance')
    .values({ key: `zone ${zone}`, value: '' })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value: '' }))
    .execute()
}

/** Until when the name, or one that reads like it, is kept from this server; undefined where it is free. */
export async function heldUntil(
  db: Db,
  wanted: { zone: string; skeleton: string; serverId: string },
  now: number,
): Promise<number | undefined> {
  const held = db
    .selectFrom('held_names')
    .select('until')
    .where('zone', '=', wanted.zone)
    .where('skeleton', '=', wanted.skeleton)
  const byOthers = held.where('server_id', '!=', wanted.serverId).where('until', '>', now)
  return (await byOthers.orderBy('until', 'desc').limit(1).executeTakeFirst())?.until
}

export async function holdName(trx: Trx, row: SubdomainRow, until: number): Promise<void> {
  const { zone, name, skeleton, server_id } = row
  await trx
    .insertInto('held_names')
    .values({ zone, name, skeleton, server_id, until })
    .onConflict((conflict) => conflict.columns(['zone', 'name']).doUpdateSet({ server_id, until }))
    .execute()
}

export async function purgeHeldNames(db: Db, now: number): Promise<void> {
  await db.deleteFrom('held_names').where('until', '<=', now).execute()
}

import { type RawBuilder, sql } from 'kysely'
import { STREAM_BATCH_BYTES } from '../../contract/fixed-limits.ts'
import { timeOfId } from '../../kit/ids.ts'
import { createTurns } from '../../kit/waiting/turns.ts'
import { containing } from '../db/containing.ts'
import type { ActivityHeadRow, ActivityRow, Db, Trx } from '../db/tables.ts'

/** The chain of what concerns no server. */
export const INSTANCE = ''

export interface ActivityFilter {
  /** One chain, or null for all of them. */
  chain: string | null
  event?: string
  /** `backup.` for every event of that family. */
  family?: string
  actor?: string
  since?: number
  until?: number
  q?: string
}

/** A row that leaves large properties in the database: many of these are small, whatever they hold. */
export type LightRow = Omit<ActivityRow, 'properties'> & { properties: string | null }

/** Larger ones are read one at a time. */
const LIGHT_BYTES = 1024
const LIGHT = [
  ...(['chain', 'seq', 'id', 'event', 'actor_type', 'actor_id', 'actor_name', 'source', 'ip'] as const),
  ...(['user_agent', 'request_id', 'at', 'hash'] as const),
  sql<string | null>`case when octet_length(properties) <= ${sql.lit(LIGHT_BYTES)} then properties end`.as(
    'properties',
  ),
] as const

/** How many rows are looked at in one query when a filter has no index: a few milliseconds, whatever is sought in them. */
export const STRETCH = 1000

/** Locks the chain until the transaction ends, so that entries commit in the order of their numbers. */
export async function advanceHead(trx: Trx, chain: string, now: number): Promise<ActivityHeadRow> {
  const advance = () =>
    trx
      .updateTable('activity_heads')
      .set({ seq: sql`seq + 1`, at: sql`case when at > ${now} then at else ${now} end` })
      .where('chain', '=', chain)
      .returningAll()
      .executeTakeFirst()
  const head = await advance()
  if (head) return head
  await trx
    .insertInto('activity_heads')
    .values({ chain, seq: 0, hash: '', at: 0, purged_seq: 0, purged_hash: '', seal: '' })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const made = await advance()
  if (!made) throw new Error(`the activity chain ${chain} has no head`)
  return made
}

export async function insertEntry(trx: Trx, row: ActivityRow): Promise<void> {
  await trx.insertInto('activity').values(row).execute()
}

/** Whether the entry is there already, and whether the server still is, in one round trip. */
export async function findEntryAndServer(trx: Trx, id: string, serverId: string) {
  const entries = trx.selectFrom('activity').where('id', '=', id).select(sql<string>`'entry'`.as('found'))
  const servers = trx.selectFrom('servers').where('id', '=', serverId).select(sql<string>`'server'`.as('found'))
  const found = (await entries.unionAll(servers).execute()).map((row) => row.found)
  return { entry: found.includes('entry'), server: found.includes('server') }
}

export async function saveHead(trx: Trx, { chain, ...head }: ActivityHeadRow): Promise<void> {
  await trx.updateTable('activity_heads').set(head).where('chain', '=', chain).execute()
}

/** As findHead, and nobody else changes the chain until the transaction ends. */
export function lockHead(trx: Trx, chain: string): Promise<ActivityHeadRow | undefined> {
  const untouched = trx.updateTable('activity_heads').set({ seq: sql`seq` })
  return untouched.where('chain', '=', chain).returningAll().executeTakeFirst()
}

export function findHead(db: Db, chain: string): Promise<ActivityHeadRow | undefined> {
  return db.selectFrom('activity_heads').selectAll().where('chain', '=', chain).executeTakeFirst()
}

export function listHeads(db: Db, after: string | null, limit: number): Promise<ActivityHeadRow[]> {
  let query = db.selectFrom('activity_heads').selectAll().orderBy('chain').limit(limit)
  if (after !== null) query = query.where('chain', '>', after)
  return query.execute()
}

/** Entries of one chain after a number, oldest first: for following and for verifying. */
export function entriesAfter(db: Db, chain: string, seq: number, limit: number): Promise<LightRow[]> {
  return db
    .selectFrom('activity')
    .select(LIGHT)
    .where('chain', '=', chain)
    .where('seq', '>', seq)
    .orderBy('seq')
    .limit(limit)
    .execute()
}

const isWhole = (row: LightRow): row is ActivityRow => row.properties !== null

/** The row with its properties; undefined where retention has purged it meanwhile. */
export function wholeRow(db: Db, row: LightRow): ActivityRow | Promise<ActivityRow | undefined> {
  if (isWhole(row)) return row
  const stored = db.selectFrom('activity').selectAll().where('chain', '=', row.chain).where('seq', '=', row.seq)
  return stored.executeTakeFirst()
}

/** The rows with their properties, as many at a time as have STREAM_BATCH_BYTES, or one that has more. */
export async function* wholeBatches(db: Db, rows: readonly LightRow[]): AsyncGenerator<ActivityRow[]> {
  let batch: ActivityRow[] = []
  let bytes = 0
  for (const light of rows) {
    const row = isWhole(light) ? light : await wholeRow(db, light)
    if (!row) continue
    if (bytes + row.properties.length > STREAM_BATCH_BYTES && batch.length > 0) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(row)
    bytes += row.properties.length
  }
  if (batch.length > 0) yield batch
}

/** The number after which to resume a stream that last saw this entry, which may have been purged since. */
export async function resumePoint(db: Db, chain: string, lastId: string): Promise<number> {
  const entries = db.selectFrom('activity').select('seq').where('chain', '=', chain)
  const seen = await entries.where('id', '=', lastId).executeTakeFirst()
  if (seen) return seen.seq
  // By its time, which is in the id: an index leads there, and none leads to the first of a chain with a later id.
  const next = await edge(db, chain, '>=', timeOfId('act', lastId) ?? 0)
  if (next !== undefined) return next - 1
  return (await findHead(db, chain))?.seq ?? 0
}

/** A page of entries that match, newest first. `before` is the key of the last entry of the page before. */
export async function findEntries(
  db: Db,
  filter: ActivityFilter,
  before: { seq: number; id: string } | null,
  limit: number,
  signal: AbortSignal,
): Promise<LightRow[]> {
  const bounds = filter.chain === null ? null : await seqBounds(db, filter.chain, filter)
  if (bounds && bounds.from > bounds.to) return []
  const axis = filter.chain === null ? idAxis(db) : seqAxis(bounds?.from ?? 1)
  const found: LightRow[] = []
  let upper: string | number | null = before === null ? (bounds ? bounds.to + 1 : null) : axis.keyOf(before)
  if (bounds && typeof upper === 'number') upper = Math.min(upper, bounds.to + 1)
  const indexed = isIndexed(filter)
  // SQLite answers without ever leaving this thread: of all that look through a chain, one reads a stretch in each turn.
  const turns = createTurns(filter.chain ?? INSTANCE, signal)
  while (found.length < limit) {
    if (!indexed) await turns.take()
    const lower: string | number | null = indexed ? axis.end : await axis.stretch(upper)
    const rows = await matching(db, filter, axis.column, upper, lower, limit - found.length).execute()
    found.push(...rows)
    if (lower === axis.end || lower === null) break
    upper = lower
  }
  return found
}

/**
 * Whether an index leads straight to what matches. Across all chains the order of the ids is the only one there is, and
 * within one no index has both the event and the actor.
 */
function isIndexed({ chain, q, family, event, actor, since, until }: ActivityFilter): boolean {
  if (q || family || (event && actor)) return false
  return chain !== null || (!event && !actor && since === undefined && until === undefined)
}

function matching(
  db: Db,
  filter: ActivityFilter,
  column: 'seq' | 'id',
  upper: string | number | null,
  lower: string | number | null,
  limit: number,
) {
  let query = db.selectFrom('activity').select(LIGHT).orderBy(column, 'desc').limit(limit)
  if (filter.chain !== null) query = query.where('chain', '=', filter.chain)
  const numbers = isIndexed(filter) ? numbersOf(db, filter, upper, lower, limit) : undefined
  if (numbers) return query.where('seq', 'in', numbers)
  if (upper !== null) query = query.where(column, '<', upper)
  if (lower !== null) query = query.where(column, '>=', lower)
  if (filter.event) query = query.where('event', '=', filter.event)
  if (filter.family) query = query.where(sql`substr(event, 1, ${filter.family.length})`, '=', filter.family)
  if (filter.actor) query = query.where('actor_id', '=', filter.actor)
  if (filter.chain === null && filter.since !== undefined) query = query.where('at', '>=', filter.since)
  if (filter.chain === null && filter.until !== undefined) query = query.where('at', '<=', filter.until)
  if (filter.q) query = query.where(searched(filter.q))
  return query
}

/**
 * The numbers of the entries of one event or one actor. Asked for alone they are all in one index, so that it is the one
 * that is used: SQLite, which has no statistics, otherwise goes through the whole chain by its primary key.
 */
function numbersOf(
  db: Db,
  { chain, event, actor }: ActivityFilter,
  upper: string | number | null,
  lower: string | number | null,
  limit: number,
) {
  if (chain === null || !(event || actor)) return undefined
  let query = db.selectFrom('activity').select('seq').where('chain', '=', chain)
  query = event ? query.where('event', '=', event) : query.where('actor_id', '=', String(actor))
  if (upper !== null) query = query.where('seq', '<', Number(upper))
  if (lower !== null) query = query.where('seq', '>=', Number(lower))
  return query.orderBy('seq', 'desc').limit(limit)
}

/** Case does not matter, and `%`, `_` and `\` in what is sought stand for themselves. */
function searched(q: string) {
  // Both sides are made lower by the engine: it may know fewer letters than JavaScript does.
  const like = (text: RawBuilder<unknown>, sought: string) =>
    sql<boolean>`lower(${text}) like lower(${containing(sought)}) escape '\\'`
  const who = sql`event || ' ' || actor_id || ' ' || actor_name || ' ' || coalesce(ip, '') || ' ' || coalesce(request_id, '')`
  return sql<boolean>`(${like(who, q)} or ${like(sql`properties`, inJson(q))})`
}

/** Properties lie in the database as JSON, in which some characters are written in another way. */
export const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Times never go backwards within a chain, so a span of time is a span of numbers. */
async function seqBounds(db: Db, chain: string, filter: ActivityFilter): Promise<{ from: number; to: number }> {
  const head = await findHead(db, chain)
  const from = filter.since === undefined ? undefined : await edge(db, chain, '>=', filter.since)
  const to = filter.until === undefined ? undefined : await edge(db, chain, '<=', filter.until)
  return {
    from: filter.since === undefined ? (head?.purged_seq ?? 0) + 1 : (from ?? Number.POSITIVE_INFINITY),
    to: filter.until === undefined ? (head?.seq ?? 0) : (to ?? 0),
  }
}

async function edge(db: Db, chain: string, side: '>=' | '<=', at: number): Promise<number | undefined> {
  const order = side === '>=' ? 'asc' : 'desc'
  const entries = db.selectFrom('activity').select('seq').where('chain', '=', chain).where('at', side, at)
  return (await entries.orderBy('at', order).orderBy('seq', order).limit(1).executeTakeFirst())?.seq
}

interface Axis {
  column: 'seq' | 'id'
  /** The key below which there is nothing. */
  end: number | null
  keyOf(entry: { seq: number; id: string }): string | number
  /** The lower end of the next stretch below a key; `end` or null for the last. */
  stretch(upper: string | number | null): Promise<string | number | null>
}

function seqAxis(from: number): Axis {
  return {
    column: 'seq',
    end: from,
    keyOf: (entry) => entry.seq,
    stretch: async (upper) => Math.max(from, Number(upper) - STRETCH),
  }
}

function idAxis(db: Db): Axis {
  return {
    column: 'id',
    end: null,
    keyOf: (entry) => entry.id,
    async stretch(upper) {
      let query = db.selectFrom('activity').select('id').orderBy('id', 'desc').offset(STRETCH).limit(1)
      if (upper !== null) query = query.where('id', '<', String(upper))
      return (await query.executeTakeFirst())?.id ?? null
    },
  }
}

/** Takes up to `batch` entries off the old end of a chain. Answers where the chain that is left begins. */
export async function purgeBatch(trx: Trx, head: ActivityHeadRow, before: number, batch: number) {
  const last = await trx
    .selectFrom('activity')
    .select(['seq', 'hash'])
    .where('chain', '=', head.chain)
    .where('seq', '>', head.purged_seq)
    .where('seq', '<=', head.purged_seq + batch)
    .where('at', '<', before)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (!last) return undefined
  await trx.deleteFrom('activity').where('chain', '=', head.chain).where('seq', '<=', last.seq).execute()
  return { purged_seq: last.seq, purged_hash: last.hash }
}

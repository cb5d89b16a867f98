import type { ActivityEntry, ActivityEvent, ActivityQuery, Verification } from '../../contract/activity.ts'
import { fail } from '../../contract/errors.ts'
import { PROPERTIES_MAX_BYTES } from '../../contract/fixed-limits.ts'
import type { Page } from '../../contract/schema.ts'
import type { Scope } from '../../contract/scopes.ts'
import { newId } from '../../kit/ids.ts'
import { jsonWithin, parsedWithin } from '../../kit/shorten.ts'
import { createTurns } from '../../kit/waiting/turns.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Changes } from '../db/row-changes.ts'
import type { ActivityHeadRow, ActivityRow, Db, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, requireAllServers, SYSTEM } from '../http/actor.ts'
import { type Cursors, pageOf, pageRequest } from '../http/paging.ts'
import { hashEntry, sealHead } from './chain.ts'
import { createRefusals } from './refusals.ts'
import {
  type ActivityFilter,
  advanceHead,
  entriesAfter,
  findEntries,
  findEntryAndServer,
  findHead,
  INSTANCE,
  inJson,
  insertEntry,
  type LightRow,
  listHeads,
  lockHead,
  purgeBatch,
  resumePoint,
  saveHead,
  wholeBatches,
} from './store.ts'
import { verifyAll, verifyChain } from './verify.ts'

export interface Activity {
  /** Writes an entry in the transaction of the change that it tells of. `serverId` null: it concerns no server. */
  record(trx: Trx, actor: Actor, event: ActivityEvent, serverId: string | null, properties?: object): Promise<void>
  /** The same for what can be told of twice. Says so, and writes nothing, where it has its entry or the server is gone. */
  recordOnce(
    trx: Trx,
    entry: { id: string; event: ActivityEvent; serverId: string; properties: object },
    actorOf: () => Actor | Promise<Actor>,
  ): Promise<'recorded' | 'known' | 'gone'>
  /** Of many within a minute, one entry has the count. */
  recordDenied(actor: Actor, serverId: string, scope: Scope): Promise<void>
  /** Records the refusals that were counted; `all`: also those whose minute is not over. */
  flushDenied(all?: boolean): Promise<void>
  /** The signal ends the search for what matches a filter. */
  list(actor: Actor, serverId: string | null, query: ActivityQuery, signal: AbortSignal): Promise<Page<ActivityEntry>>
  /** Everything that matches, newest first, in constant memory, as it lies in the database. */
  stream(serverId: string | null, query: ActivityQuery, signal: AbortSignal): AsyncGenerator<ActivityRow[]>
  /** Entries as they are written, oldest first, each once, until the signal says stop. An empty batch is a sign of life. */
  follow(
    serverId: string,
    lastId: string | null,
    query: ActivityQuery,
    signal: AbortSignal,
  ): AsyncGenerator<ActivityEntry[]>
  verify(actor: Actor, serverId: string | null, signal: AbortSignal): Promise<Verification>
  purge(olderThan: number): Promise<number>
}

// Small, so that what an export holds at a time dies young; the queries are cheap.
const STREAM_BATCH = 200
const FOLLOW_BATCH = 200
const PURGE_BATCH = 500
const HEARTBEAT_MS = 15_000

export function createActivity(deps: {
  db: Db
  key: Buffer
  cursors: Cursors
  changes: Changes
  clock: { now(): number }
}): Activity {
  const { db, key, cursors, changes, clock } = deps

  const record: Activity['record'] = async (trx, actor, event, serverId, properties = {}) => {
    const head = await advanceHead(trx, serverId ?? INSTANCE, clock.now())
    await append(trx, head, actor, { id: newId('act', head.at), event, properties })
  }

  /** `head` is locked, and has the number and the time of the entry. */
  async function append(
    trx: Trx,
    head: ActivityHeadRow,
    actor: Actor,
    { id, event, properties }: { id: string; event: ActivityEvent; properties: object },
  ): Promise<void> {
    const row = {
      chain: head.chain,
      seq: head.seq,
      id,
      event,
      actor_type: actor.type,
      actor_id: actor.id,
      actor_name: actor.name,
      source: actor.source,
      ip: actor.ip,
      user_agent: actor.userAgent,
      request_id: actor.requestId,
      properties: jsonWithin(properties, PROPERTIES_MAX_BYTES),
      at: head.at,
    }
    const hash = hashEntry(key, head.hash, row)
    await insertEntry(trx, { ...row, hash })
    await saveHead(trx, sealed(key, { ...head, hash }))
    changes.tellAfter(trx, chainKey(head.chain))
  }

  const refusals = createRefusals(({ actor, serverId, scope }, count) =>
    transact(db, {}, async (trx) => {
      const properties = { scope, ...(count > 1 ? { count } : {}) }
      if (await lockServer(trx, serverId)) await record(trx, actor, 'access.denied', serverId, properties)
    }),
  )

  return {
    record,

    async recordOnce(trx, { serverId, ...entry }, actorOf) {
      const now = clock.now()
      // Locked before anything is looked for: of two who record the same, the second sees the entry of the first.
      const locked = await lockHead(trx, serverId)
      const found = await findEntryAndServer(trx, entry.id, serverId)
      if (found.entry) return 'known'
      if (!found.server) return 'gone'
      const actor = await actorOf()
      const head = locked
        ? { ...locked, seq: locked.seq + 1, at: Math.max(locked.at, now) }
        : await advanceHead(trx, serverId, now)
      await append(trx, head, actor, entry)
      return 'recorded'
    },

    recordDenied: (actor, serverId, scope) => refusals.add({ actor, serverId, scope }),
    flushDenied: refusals.flush,

    async list(actor, serverId, query, signal) {
      if (serverId === null) requireAllServers(actor)
      const listName = `activity ${serverId ?? '*'}`
      const request = pageRequest(cursors, listName, query)
      const [seq, id] = request.after ?? []
      const before = request.after ? { seq: Number(seq), id: String(id) } : null
      const light = await findEntries(db, filterOf(serverId, query), before, request.limit + 1, signal)
      const entries: (ActivityEntry & { seq: number })[] = []
      for await (const batch of wholeBatches(db, light))
        for (const row of batch) entries.push({ seq: row.seq, ...present(row) })
      const cursorOf = ({ seq: last, id: lastId }: { seq: number; id: string }) =>
        cursors.encode(listName, [last, lastId])
      return pageOf(entries, request, ({ seq: _, ...entry }) => entry, cursorOf)
    },

    async *stream(serverId, query, signal) {
      const filter = filterOf(serverId, query)
      let before: LightRow | null = null
      const turns = createTurns(serverId ?? INSTANCE, signal)
      for (;;) {
        await turns.take()
        const rows: LightRow[] = await findEntries(db, filter, before, STREAM_BATCH, signal)
        yield* wholeBatches(db, rows)
        if (rows.length < STREAM_BATCH) return
        before = rows.at(-1) ?? null
      }
    },

    async *follow(serverId, lastId, query, signal) {
      if (lastId !== null && !/^act_[0-9a-z]{1,64}$/.test(lastId)) {
        throw fail('invalid_request', 'Last-Event-ID is not the id of an entry.')
      }
      const matches = matcher(filterOf(serverId, query))
      const turns = createTurns(serverId, signal)
      using changed = changes.watch(chainKey(serverId))
      let position =
        lastId === null ? ((await findHead(db, serverId))?.seq ?? 0) : await resumePoint(db, serverId, lastId)
      // Says that the stream has begun: whatever is written from here on will be seen.
      yield []
      let quietSince = clock.now()
      while (!signal.aborted) {
        const rows = await entriesAfter(db, serverId, position, FOLLOW_BATCH)
        position = rows.at(-1)?.seq ?? position
        // Entries of older versions are large, and many readers come upon them at once.
        if (rows.length > 0) await turns.take()
        for await (const batch of wholeBatches(db, rows)) {
          const wanted = batch.filter(matches)
          if (wanted.length === 0) continue
          quietSince = clock.now()
          yield wanted.map(present)
          await turns.take()
        }
        if (clock.now() - quietSince >= HEARTBEAT_MS) {
          quietSince = clock.now()
          yield []
        }
        if (rows.some((row) => row.event === 'server.purged')) return
        if (rows.length === 0) await changed.wait(HEARTBEAT_MS, signal)
      }
    },

    async verify(actor, serverId, signal) {
      if (serverId !== null) return verifyChain({ db, key, signal }, serverId)
      requireAllServers(actor)
      return verifyAll({ db, key, signal })
    },

    async purge(olderThan) {
      let purged = 0
      let after: string | null = null
      for (;;) {
        const heads = await listHeads(db, after, 100)
        for (const { chain } of heads) purged += await purgeChain(db, key, chain, olderThan)
        if (heads.length < 100) break
        after = heads.at(-1)?.chain ?? null
      }
      if (purged > 0) {
        const properties = { entries: purged, olderThan: new Date(olderThan).toISOString() }
        await transact(db, SYSTEM, (trx) => record(trx, SYSTEM, 'activity.purged', null, properties))
      }
      return purged
    },
  }
}

const chainKey = (chain: string) => `activity ${chain}`

const sealed = (key: Buffer, head: ActivityHeadRow): ActivityHeadRow => ({ ...head, seal: sealHead(key, head) })

async function purgeChain(db: Db, key: Buffer, chain: string, olderThan: number): Promise<number> {
  let purged = 0
  for (;;) {
    const taken = await transact(db, SYSTEM, async (trx) => {
      const head = await lockHead(trx, chain)
      const start = head && (await purgeBatch(trx, head, olderThan, PURGE_BATCH))
      if (!start) return 0
      await saveHead(trx, sealed(key, { ...head, ...start }))
      return start.purged_seq - head.purged_seq
    })
    if (taken === 0) return purged
    purged += taken
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function filterOf(serverId: string | null, query: ActivityQuery): ActivityFilter {
  const { event, actor, since, until, q } = query
  const family = event?.endsWith('.*') ? event.slice(0, -1) : undefined
  return {
    chain: serverId,
    ...(family ? { family } : event ? { event } : {}),
    ...(actor ? { actor } : {}),
    ...(since ? { since: Date.parse(since) } : {}),
    ...(until ? { until: Date.parse(until) } : {}),
    ...(q ? { q } : {}),
  }
}

/** The same filter for entries that are at hand already. */
function matcher(filter: ActivityFilter): (row: ActivityRow) => boolean {
  const q = filter.q?.toLowerCase()
  return (row) =>
    (!filter.event || row.event === filter.event) &&
    (!filter.family || row.event.startsWith(filter.family)) &&
    (!filter.actor || row.actor_id === filter.actor) &&
    (filter.since === undefined || row.at >= filter.since) &&
    (filter.until === undefined || row.at <= filter.until) &&
    (!q || who(row).includes(q) || row.properties.toLowerCase().includes(inJson(q)))
}

const who = (row: ActivityRow) =>
  [row.event, row.actor_id, row.actor_name, row.ip, row.request_id].join(' ').toLowerCase()

function present(row: ActivityRow): ActivityEntry {
  return {
    id: row.id,
    serverId: row.chain || null,
    event: row.event as ActivityEvent,
    actor: { type: row.actor_type, id: row.actor_id, name: row.actor_name },
    source: row.source as ActivityEntry['source'],
    ip: row.ip,
    userAgent: row.user_agent,
    requestId: row.request_id,
    // Those of older versions may be larger than any is now.
    properties: parsedWithin(row.properties, PROPERTIES_MAX_BYTES),
    timestamp: new Date(row.at).toISOString(),
  }
}

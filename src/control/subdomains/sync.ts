// Brings DNS to what the database says of one subdomain. Every step is safe to repeat, so that it does not matter
// where a crash or a failing provider cut it short.
import type { Logger } from 'pino'
import { DNS_REASONS, type DnsReason } from '../../contract/subdomains.ts'
import { type DnsFaultKind, type DnsProvider, DnsProviderError, isDnsFault } from '../../dns/provider.ts'
import { type ChangeableRecordSet, sameRecordSet } from '../../dns/records.ts'
import { askAuthority } from '../../dns/resolve.ts'
import type { Activity } from '../activity/service.ts'
import type { Db, SubdomainRow, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import type { Providers } from './providers.ts'
import { absent, changesFor, foreignSets, hostnameOf, markerSet, ownedIn, planRecords } from './records.ts'
import * as store from './store.ts'
import type { Zone } from './zones.ts'

export interface SyncDeps {
  db: Db
  activity: Activity
  providers: Providers
  zones: ReadonlyMap<string, Zone>
  instanceId: string
  clock: { now(): number }
  log: Logger
  holdNameMs: number
}

export type SyncResult =
  /** The provider has confirmed; `propagated` says whether the name servers answer with it. */
  { state: 'active'; propagated: boolean } | { state: 'gone' }

export interface Sync {
  /** Throws DnsProviderError or NotConfirmed; the row says so by then. */
  run(actor: Actor, row: SubdomainRow): Promise<SyncResult>
  wantedSets(row: SubdomainRow, server: { game: string | null; port: number | null }): ChangeableRecordSet[]
}

/** The provider reported success, and the zone does not show it. */
export class NotConfirmed extends Error {}

/** Nobody can help by trying again: somebody has to change something first. */
const LASTING: ReadonlySet<DnsReason> = new Set(['conflict', 'invalid', 'refused', 'zone_missing'])

export function createSync(deps: SyncDeps): Sync {
  const { db, activity, providers, zones, instanceId, clock, log } = deps

  function zoneOf(row: SubdomainRow): Zone {
    const zone = zones.get(row.zone)
    if (!zone) throw new DnsProviderError('zone_missing', `The zone ${row.zone} is not configured.`)
    return zone
  }

  function wantedSets(row: SubdomainRow, server: { game: string | null; port: number | null }): ChangeableRecordSet[] {
    const zone = zoneOf(row)
    const hostname = hostnameOf(row.name, row.zone)
    const sets = planRecords(server, zone, hostname)
    return [...sets, markerSet({ instanceId, subdomainId: row.id }, hostname, sets, zone.ttl)]
  }

  async function put(provider: DnsProvider, row: SubdomainRow): Promise<ChangeableRecordSet[]> {
    const server = await db
      .selectFrom('servers')
      .select(['game', 'port'])
      .where('id', '=', row.server_id)
      .executeTakeFirstOrThrow()
    const wanted = wantedSets(row, server)
    const listing = await provider.list(row.zone)
    const mine = ownedIn(listing, instanceId).find(({ hostname }) => hostname === hostnameOf(row.name, row.zone))
    const foreign = foreignSets(listing, wanted, mine)
    if (foreign.length > 0)
      throw new DnsProviderError('conflict', `The zone has ${foreign.join(', ')}, which we did not make.`)
    const changes = changesFor(listing, wanted, mine)
    if (changes.length > 0) {
      // For a new name the provider itself sees to it, where it can, that nobody came in between.
      await provider.apply(row.zone, mine ? changes : changes.map((change) => ({ ...change, onlyIfAbsent: true })))
      const after = await provider.list(row.zone)
      if (changesFor(after, wanted, mine).length > 0) throw new NotConfirmed()
    }
    return wanted
  }

  async function takeAway(provider: DnsProvider, row: SubdomainRow): Promise<void> {
    const hostname = hostnameOf(row.name, row.zone)
    const owned = async () =>
      ownedIn(await provider.list(row.zone), instanceId).find((found) => found.hostname === hostname)
    const mine = await owned()
    if (!mine) return
    await provider.apply(row.zone, mine.sets.map(absent))
    if (await owned()) throw new NotConfirmed()
  }

  /** Asked over DNS, not assumed. Every authoritative server must answer with every set. */
  async function isAnswered(
    provider: DnsProvider,
    row: SubdomainRow,
    wanted: readonly ChangeableRecordSet[],
  ): Promise<boolean> {
    try {
      for (const server of await provider.authorities(row.zone)) {
        for (const set of wanted) {
          const { recordSet, authoritative } = await askAuthority(server, set.name, set.type)
          // A server may count its TTL down or have its own; what matters to a player is the data.
          if (!authoritative || !recordSet || !sameRecordSet({ ...recordSet, ttl: set.ttl }, set)) return false
        }
      }
      return true
    } catch (error) {
      if (!isDnsFault(error)) throw error
      return false
    }
  }

  async function noteFault(actor: Actor, row: SubdomainRow, error: unknown): Promise<void> {
    const reason = reasonOf(error)
    if (reason === null) return
    log.warn({ err: error, subdomainId: row.id, zone: row.zone, reason }, 'DNS could not be brought up to date')
    await transact(db, {}, async (trx) => {
      const current = await store.findSubdomain(trx, row.id)
      if (!current) return
      const status = current.status === 'deleting' ? 'deleting' : LASTING.has(reason) ? 'failed' : 'pending'
      await store.updateSubdomain(trx, row.id, { reason, status, updated_at: clock.now() })
      // One entry for a fault, however often it is met again.
      if (current.reason !== reason)
        await record(trx, actor, row, 'subdomain.provider_failed', { reason, detail: DNS_REASONS[reason] })
    })
  }

  const record = (
    trx: Trx,
    actor: Actor,
    row: SubdomainRow,
    event: Parameters<Activity['record']>[2],
    more: object = {},
  ) =>
    activity.record(trx, actor, event, row.server_id, {
      subdomainId: row.id,
      hostname: hostnameOf(row.name, row.zone),
      ...more,
    })

  async function remove(actor: Actor, row: SubdomainRow): Promise<SyncResult> {
    await takeAway(providers.of(zoneOf(row).zone), row)
    await transact(db, {}, async (trx) => {
      if (!(await store.removeSubdomain(trx, row.id))) return
      await store.holdName(trx, {
        zone: row.zone,
        name: row.name,
        server_id: row.server_id,
        until: clock.now() + deps.holdNameMs,
      })
      await record(trx, actor, row, 'subdomain.deleted')
    })
    return { state: 'gone' }
  }

  async function establish(actor: Actor, row: SubdomainRow): Promise<SyncResult> {
    const provider = providers.of(zoneOf(row).zone)
    const wanted = await put(provider, row)
    await transact(db, {}, async (trx) => {
      const current = await store.findSubdomain(trx, row.id)
      if (!current || current.status === 'deleting' || (current.status === 'active' && current.reason === null)) return
      await store.updateSubdomain(trx, row.id, { status: 'active', reason: null, updated_at: clock.now() })
      await record(trx, actor, row, 'subdomain.activated')
    })
    if (row.propagated_at !== null) return { state: 'active', propagated: true }
    const propagated = await isAnswered(provider, row, wanted)
    if (propagated) await store.updateSubdomain(db, row.id, { propagated_at: clock.now() })
    return { state: 'active', propagated }
  }

  return {
    wantedSets,
    async run(actor, row) {
      try {
        return await (row.status === 'deleting' ? remove(actor, row) : establish(actor, row))
      } catch (error) {
        await noteFault(actor, row, error)
        throw error
      }
    },
  }
}

export function reasonOf(error: unknown): DnsReason | null {
  if (error instanceof NotConfirmed) return 'unconfirmed'
  return isDnsFault(error) ? (error.kind satisfies DnsFaultKind) : null
}

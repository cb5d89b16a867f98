// The records of one subdomain at its provider: created, removed, and queried over DNS. Nothing counts until the
// provider shows it.
import type { DnsReason } from '../../contract/subdomains.ts'
import { type CallOptions, type DnsProvider, DnsProviderError, isDnsFault } from '../../dns/provider.ts'
import { type ChangeableRecordSet, sameRecordSet } from '../../dns/records.ts'
import { askAuthority } from '../../dns/resolve.ts'
import type { SubdomainRow } from '../db/tables.ts'
import type { Providers } from './providers.ts'
import {
  type AddressedServer,
  absent,
  changesFor,
  type Found,
  foreignSets,
  hostnameOf,
  markerSet,
  ownedAt,
  planRecords,
} from './records.ts'
import type { Zone } from './zone-config.ts'

export interface ProviderRecordsDeps {
  providers: Providers
  zones: ReadonlyMap<string, Zone>
  instanceId: string
}

export interface ProviderRecords {
  /** None where the zone is not configured. */
  wantedSets(row: SubdomainRow, server: AddressedServer): ChangeableRecordSet[]
  ownedAt(listing: Parameters<typeof ownedAt>[0], row: SubdomainRow): Found | undefined
  /** Answers what had to be changed, once the provider shows it. `beforeChange` is awaited where anything has to be. */
  put(
    row: SubdomainRow,
    wanted: ChangeableRecordSet[],
    call: CallOptions,
    beforeChange: () => Promise<void>,
  ): Promise<string[]>
  takeAway(row: SubdomainRow, call: CallOptions): Promise<void>
  /** Asked over DNS, not assumed. Every authoritative server must answer with every set. */
  isAnswered(row: SubdomainRow, wanted: ChangeableRecordSet[], call: CallOptions): Promise<boolean>
}

/** The provider reported success, and the zone does not show it. */
class NotConfirmed extends Error {}

class ZoneUnconfigured extends Error {}

export function createProviderRecords({ providers, zones, instanceId }: ProviderRecordsDeps): ProviderRecords {
  const providerOf = (row: SubdomainRow): DnsProvider => {
    if (!zones.has(row.zone)) throw new ZoneUnconfigured()
    return providers.of(row.zone)
  }

  function wantedSets(row: SubdomainRow, server: AddressedServer): ChangeableRecordSet[] {
    const zone = zones.get(row.zone)
    if (!zone) return []
    const hostname = hostnameOf(row.name, row.zone)
    const sets = planRecords(server, zone, hostname)
    return [...sets, markerSet({ instanceId, subdomainId: row.id }, hostname, sets, zone.ttl)]
  }

  const owned = (listing: Parameters<typeof ownedAt>[0], row: SubdomainRow) =>
    ownedAt(listing, hostnameOf(row.name, row.zone), { instanceId, confirmed: confirmedSets(row) })

  async function put(
    row: SubdomainRow,
    wanted: ChangeableRecordSet[],
    call: CallOptions,
    beforeChange: () => Promise<void>,
  ): Promise<string[]> {
    const provider = providerOf(row)
    const hostname = hostnameOf(row.name, row.zone)
    const listing = await provider.list(row.zone, call)
    const mine = owned(listing, row)
    const foreign = foreignSets(listing, hostname, wanted, mine)
    if (foreign.length > 0)
      throw new DnsProviderError('conflict', `The zone has ${foreign.join(', ')}, which we did not make.`)
    const changes = changesFor(listing, wanted, mine)
    if (changes.length === 0) return []
    await beforeChange()
    // For a new name the provider itself sees to it, where it can, that nobody came in between.
    await provider.apply(row.zone, mine ? changes : changes.map((change) => ({ ...change, onlyIfAbsent: true })), call)
    const after = await provider.list(row.zone, call)
    if (changesFor(after, wanted, owned(after, row)).length > 0) throw new NotConfirmed()
    return changes.map(({ type, name }) => `${type} ${name}`)
  }

  async function takeAway(row: SubdomainRow, call: CallOptions): Promise<void> {
    const provider = providerOf(row)
    const mine = owned(await provider.list(row.zone, call), row)
    if (!mine) return
    await provider.apply(row.zone, mine.sets.map(absent), call)
    if (owned(await provider.list(row.zone, call), row)) throw new NotConfirmed()
  }

  async function isAnswered(row: SubdomainRow, wanted: ChangeableRecordSet[], call: CallOptions): Promise<boolean> {
    try {
      for (const server of await providerOf(row).authorities(row.zone, call)) {
        for (const set of wanted) {
          const { recordSet, authoritative } = await askAuthority(server, set.name, set.type, call)
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

  return { wantedSets, ownedAt: owned, put, takeAway, isAnswered }
}

function confirmedSets(row: SubdomainRow): ChangeableRecordSet[] {
  return row.confirmed === null ? [] : JSON.parse(row.confirmed)
}

export function reasonOf(error: unknown): DnsReason | null {
  if (error instanceof NotConfirmed) return 'unconfirmed'
  if (error instanceof ZoneUnconfigured) return 'zone_unconfigured'
  return isDnsFault(error) ? error.kind : null
}

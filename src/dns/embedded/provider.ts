// The embedded provider: an authoritative DNS server in this process, so that one machine with a delegated zone needs
// nothing else. Zones come from configuration, records from `apply`; the answer changes only once the disk has it.
import {
  type CallOptions,
  type Change,
  checkChanges,
  checkConflicts,
  type DnsProvider,
  DnsProviderError,
  type ZoneListing,
} from '../provider.ts'
import {
  type ChangeableRecordSet,
  isInZone,
  isName,
  keyOf,
  normaliseName,
  normaliseRecordSet,
  type RecordSet,
  sameRecordSet,
} from '../records.ts'
import { createLimiter } from './limiter.ts'
import { createResponder } from './responder.ts'
import { listen, type TcpLimits } from './sockets.ts'
import { type ServedZone, serveZone, wireKey } from './zone.ts'
import type { StoredZone, ZoneStore } from './zonefile.ts'

export interface EmbeddedZone {
  zone: string
  /** The hosts that the parent zone delegates to; the first is the primary. Default: `ns1` below the zone. */
  nameServers?: string[]
  /** Addresses of those name servers that are inside the zone; without them a delegation leads nowhere. */
  nameServerAddresses?: Record<string, string[]>
  /** As a mail address with a dot for the @. Default: `hostmaster` below the zone. */
  contact?: string
  /** How long "no such name" may be remembered, in seconds: what a player waits after asking too early. */
  negativeTtl?: number
}

export interface EmbeddedOptions {
  zones: EmbeddedZone[]
  store: ZoneStore
  host: string
  /** 0 picks one. */
  port: number
  /** Responses a second to one network, 0 for no limit. */
  responsesPerSecond?: number
  tcp?: Partial<TcpLimits>
  now?: () => number
}

export interface EmbeddedDns extends DnsProvider {
  readonly host: string
  readonly port: number
}

const DEFAULT_RESPONSES_PER_SECOND = 500
const DEFAULT_TCP: TcpLimits = { idleMs: 5_000, connections: 256, connectionsPerAddress: 32 }
const APEX_TTL = 3600
const DEFAULT_NEGATIVE_TTL = 30

interface Held {
  fixed: RecordSet[]
  stored: StoredZone
  /** Changes to a zone are made one after another; this settles when the last has. */
  tail: Promise<unknown>
}

export async function createEmbeddedDns(options: EmbeddedOptions): Promise<EmbeddedDns> {
  const now = options.now ?? Date.now
  const held = new Map<string, Held>()
  const served = new Map<string, ServedZone>()
  const publish = (zone: Held) => {
    served.set(wireKey(zone.stored.zone), serveZone(zone.stored.zone, allSets(zone)))
  }
  for (const config of options.zones) {
    const zone = await openZone(config, options.store, now)
    held.set(zone.stored.zone, zone)
    publish(zone)
  }
  const judge = createLimiter({ perSecond: options.responsesPerSecond ?? DEFAULT_RESPONSES_PER_SECOND, now })
  const listening = await listen(options, createResponder(served), judge, { ...DEFAULT_TCP, ...options.tcp })
  let closed: Promise<void> | undefined

  const zoneNamed = (zone: string, call: CallOptions) => {
    call.signal?.throwIfAborted()
    if (closed) throw new DnsProviderError('unreachable', 'The embedded DNS server has been closed.')
    const found = held.get(normaliseName(zone))
    if (!found) throw new DnsProviderError('zone_missing', `The zone ${zone} is not served here.`)
    return found
  }

  const change = async (zone: Held, changes: Change[]) => {
    const next = planChange(zone, changes, now())
    if (!next) return
    await save(options.store, next)
    zone.stored = next
    publish(zone)
  }

  return {
    kind: 'embedded',
    capabilities: { atomicChanges: Number.MAX_SAFE_INTEGER, onlyIfAbsent: 'atomic', minTtl: 0 },
    host: listening.host,
    port: listening.port,
    async list(zone, call = {}) {
      return listingOf(zoneNamed(zone, call))
    },
    async apply(zone, changes, call = {}) {
      const target = zoneNamed(zone, call)
      const checked = checkChanges(target.stored.zone, changes)
      const turn = target.tail.then(() => {
        call.signal?.throwIfAborted()
        return change(target, checked)
      })
      target.tail = turn.catch(() => {})
      await orAborted(turn, call.signal)
    },
    async authorities(zone, call = {}) {
      zoneNamed(zone, call)
      return [{ host: listening.host, port: listening.port }]
    },
    close() {
      closed ??= Promise.all([listening.close(), ...[...held.values()].map((zone) => zone.tail)]).then(() => {})
      return closed
    },
  }
}

/** The zone after the changes, or null if they change nothing. */
function planChange(zone: Held, changes: readonly Change[], now: number): StoredZone | null {
  const fixed = new Set(apexSets(zone).map(keyOf))
  const taken = changes.find((change) => fixed.has(keyOf(change)))
  if (taken) throw new DnsProviderError('conflict', `${taken.name} ${taken.type} is set by the zone's configuration.`)
  checkConflicts(listingOf(zone), changes)
  const sets = new Map(zone.stored.recordSets.map((set) => [keyOf(set), set]))
  let changed = false
  for (const { onlyIfAbsent: _, ...set } of changes) {
    const key = keyOf(set)
    const present = sets.get(key)
    if (set.records.length === 0) changed = sets.delete(key) || changed
    else if (!present || !sameRecordSet(present, set as RecordSet)) {
      sets.set(key, set as ChangeableRecordSet)
      changed = true
    }
  }
  return changed
    ? { ...zone.stored, serial: nextSerial(zone.stored.serial, now), recordSets: [...sets.values()] }
    : null
}

/** At least the time of day, so that it grows even over a store that was lost. */
function nextSerial(serial: number, now: number): number {
  return Math.max(serial + 1, Math.floor(now / 1000))
}

async function openZone(config: EmbeddedZone, store: ZoneStore, now: () => number): Promise<Held> {
  const zone = normaliseName(config.zone)
  if (!isName(zone)) throw new DnsProviderError('invalid', `${JSON.stringify(config.zone)} is not the name of a zone.`)
  const stored = (await store.load(zone)) ?? { zone, serial: nextSerial(0, now()), recordSets: [] }
  return { fixed: configuredSets(zone, config), stored, tail: Promise.resolve() }
}

function configuredSets(zone: string, config: EmbeddedZone): RecordSet[] {
  const nameServers = (config.nameServers ?? [`ns1.${zone}`]).map(normaliseName)
  const addresses = Object.entries(config.nameServerAddresses ?? {}).map(
    ([name, list]) => [normaliseName(name), list] as const,
  )
  const outside = addresses.find(([name]) => !isInZone(name, zone))
  if (outside) throw new DnsProviderError('invalid', `The name server ${outside[0]} is not in the zone ${zone}.`)
  const soa: RecordSet = {
    name: zone,
    type: 'SOA',
    ttl: APEX_TTL,
    records: [
      {
        primary: nameServers[0] ?? `ns1.${zone}`,
        contact: normaliseName(config.contact ?? `hostmaster.${zone}`),
        serial: 0,
        refresh: 3600,
        retry: 600,
        expire: 1_209_600,
        negativeTtl: config.negativeTtl ?? DEFAULT_NEGATIVE_TTL,
      },
    ],
  }
  const ns: RecordSet = { name: zone, type: 'NS', ttl: APEX_TTL, records: nameServers.map((target) => ({ target })) }
  const glue = addresses.flatMap(([name, list]) => addressSets(name, list))
  return [soa, ns, ...glue].map(normaliseRecordSet)
}

function addressSets(name: string, addresses: string[]): RecordSet[] {
  const byType = { A: addresses.filter((a) => !a.includes(':')), AAAA: addresses.filter((a) => a.includes(':')) }
  return (['A', 'AAAA'] as const)
    .filter((type) => byType[type].length > 0)
    .map((type) => ({ name, type, ttl: APEX_TTL, records: byType[type].map((address) => ({ address })) }))
}

/** What configuration decides, with the serial of the moment. */
function apexSets(zone: Held): RecordSet[] {
  return zone.fixed.map((set) =>
    set.type === 'SOA' ? { ...set, records: set.records.map((soa) => ({ ...soa, serial: zone.stored.serial })) } : set,
  )
}

/** Where configuration was given a name that a record had before, configuration wins. */
function allSets(zone: Held): RecordSet[] {
  const fixed = apexSets(zone)
  const taken = new Set(fixed.map(keyOf))
  return [...fixed, ...zone.stored.recordSets.filter((set) => !taken.has(keyOf(set)))]
}

function listingOf(zone: Held): ZoneListing {
  return structuredClone({ recordSets: allSets(zone), others: [] })
}

async function save(store: ZoneStore, zone: StoredZone): Promise<void> {
  try {
    await store.save(zone)
  } catch (cause) {
    throw new DnsProviderError('server_error', 'The zone could not be written to disk.', { cause })
  }
}

async function orAborted(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return work
  const done = new AbortController()
  try {
    await Promise.race([
      work,
      new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { signal: done.signal })
      }),
    ])
  } finally {
    done.abort()
  }
}

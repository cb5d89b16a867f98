// One zone of the embedded server: what configuration says of it, what was applied to it, and the order of changes.
import { type Change, checkChanges, checkConflicts, DnsProviderError, type ZoneListing } from '../provider.ts'
import {
  type ChangeableRecordSet,
  isName,
  keyOf,
  normaliseName,
  normaliseRecordSet,
  type RecordSet,
  sameRecordSet,
} from '../records.ts'
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

export interface HeldZone {
  readonly zone: string
  recordSets(): RecordSet[]
  /** Resolves when the changes, in their normal form, are on disk and published. One after another, in order. */
  apply(changes: readonly Change[], signal?: AbortSignal): Promise<void>
  /** Resolves when no change is under way. */
  settled(): Promise<void>
}

interface Deps {
  store: ZoneStore
  now: () => number
  /** Called at once, and after every change that has reached the disk. */
  publish(zone: string, recordSets: RecordSet[]): void
}

interface Waiting {
  changes: readonly Change[]
  signal: AbortSignal | undefined
  resolve(): void
  reject(reason: unknown): void
}

const APEX_TTL = 3600
const DEFAULT_NEGATIVE_TTL = 30

export async function openZone(config: EmbeddedZone, { store, now, publish }: Deps): Promise<HeldZone> {
  const zone = normaliseName(config.zone)
  if (!isName(zone)) throw new DnsProviderError('invalid', `${JSON.stringify(config.zone)} is not the name of a zone.`)
  const configured = configuredSets(zone, config)
  let stored: StoredZone = (await store.load(zone)) ?? { zone, serial: nextSerial(0, now()), recordSets: [] }
  // A file may have been edited by hand; a fault must show now, not in the middle of answering.
  checkChanges(zone, stored.recordSets)
  let waiting: Waiting[] = []
  let work: Promise<void> | undefined

  /** Changes that came while the last were being written share the next write: a sync costs far more than they do. */
  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      const turn = waiting
      waiting = []
      const { next, made } = planAll(configured, stored, turn, now())
      try {
        if (next !== stored) await store.save(next)
      } catch (cause) {
        for (const { reject } of made) {
          reject(new DnsProviderError('server_error', 'The zone could not be written to disk.', { cause }))
        }
        continue
      }
      if (next !== stored) publish(zone, allSets(configured, next))
      stored = next
      for (const { resolve } of made) resolve()
    }
    work = undefined
  }

  publish(zone, allSets(configured, stored))
  return {
    zone,
    recordSets: () => allSets(configured, stored),
    apply(changes, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      waiting.push({ changes, signal, resolve, reject })
      work ??= Promise.resolve().then(drain)
      return promise
    },
    settled: async () => work,
  }
}

/** Each on top of those before it; one that cannot be made fails alone. */
function planAll(configured: RecordSet[], stored: StoredZone, turn: Waiting[], now: number) {
  let next = stored
  const made: Waiting[] = []
  for (const one of turn) {
    try {
      one.signal?.throwIfAborted()
      next = planChange(configured, next, one.changes, now)
      made.push(one)
    } catch (error) {
      one.reject(error)
    }
  }
  return { next, made }
}

/** The zone after the changes; the very same if they change nothing. */
function planChange(configured: RecordSet[], stored: StoredZone, changes: readonly Change[], now: number): StoredZone {
  const fixed = new Set(configured.map(keyOf))
  const taken = changes.find((change) => fixed.has(keyOf(change)))
  if (taken) throw new DnsProviderError('conflict', `${taken.name} ${taken.type} is set by the zone's configuration.`)
  checkConflicts(listingOf(allSets(configured, stored)), changes)
  const sets = new Map(stored.recordSets.map((set) => [keyOf(set), set]))
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
  return changed ? { ...stored, serial: nextSerial(stored.serial, now), recordSets: [...sets.values()] } : stored
}

/** At least the time of day, so that it grows even over a store that was lost. */
function nextSerial(serial: number, now: number): number {
  return Math.max(serial + 1, Math.floor(now / 1000))
}

function configuredSets(zone: string, config: EmbeddedZone): RecordSet[] {
  const nameServers = (config.nameServers ?? [`ns1.${zone}`]).map(normaliseName)
  const addresses = Object.entries(config.nameServerAddresses ?? {}).map(
    ([name, list]) => [normaliseName(name), list] as const,
  )
  const glue = addresses.flatMap(([name, list]) => addressSets(name, list))
  checkChanges(zone, glue)
  const contact = normaliseName(config.contact ?? `hostmaster.${zone}`)
  const bad = [...nameServers, contact].find((name) => !isName(name))
  if (bad !== undefined) throw new DnsProviderError('invalid', `${JSON.stringify(bad)} is not the name of a host.`)
  const soa: RecordSet = {
    name: zone,
    type: 'SOA',
    ttl: APEX_TTL,
    records: [
      {
        primary: nameServers[0] ?? `ns1.${zone}`,
        contact,
        serial: 0,
        refresh: 3600,
        retry: 600,
        expire: 1_209_600,
        negativeTtl: config.negativeTtl ?? DEFAULT_NEGATIVE_TTL,
      },
    ],
  }
  const ns: RecordSet = { name: zone, type: 'NS', ttl: APEX_TTL, records: nameServers.map((target) => ({ target })) }
  return [soa, ns, ...glue].map(normaliseRecordSet)
}

function addressSets(name: string, addresses: string[]): ChangeableRecordSet[] {
  const byType = { A: addresses.filter((a) => !a.includes(':')), AAAA: addresses.filter((a) => a.includes(':')) }
  return (['A', 'AAAA'] as const)
    .filter((type) => byType[type].length > 0)
    .map((type) => ({ name, type, ttl: APEX_TTL, records: byType[type].map((address) => ({ address })) }))
}

/** Where configuration was given a name that a record had before, configuration wins. */
function allSets(configured: RecordSet[], stored: StoredZone): RecordSet[] {
  const fixed = configured.map((set) =>
    set.type === 'SOA' ? { ...set, records: set.records.map((soa) => ({ ...soa, serial: stored.serial })) } : set,
  )
  const taken = new Set(fixed.map(keyOf))
  return [...fixed, ...stored.recordSets.filter((set) => !taken.has(keyOf(set)))]
}

function listingOf(recordSets: RecordSet[]): ZoneListing {
  return { recordSets, others: [] }
}

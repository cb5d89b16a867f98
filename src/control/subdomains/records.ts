// The DNS records a subdomain needs, as a pure function of the server and the zone; and how our records are told apart
// from others: by a TXT marker that names the instance, the subdomain and the record sets we made for it.
import { isIPv4, isIPv6 } from 'node:net'
import { GAMES, type Game, type GameId } from '../../contract/games/games.ts'
import type { Change, ZoneListing } from '../../dns/provider.ts'
import { type ChangeableRecordSet, type RecordSet, sameRecordSet } from '../../dns/records.ts'
import type { ServerRow } from '../db/tables.ts'
import type { Zone } from './zone-config.ts'

/** What the address of a server is made from. */
export interface AddressedServer extends Pick<ServerRow, 'game' | 'port'> {
  /** Of a template of somebody's own; null where there is none. */
  template: { srv: string | null; defaultPort: number | null } | null
}

export interface Owner {
  instanceId: string
  subdomainId: string
}

export interface Marker extends Owner {
  /** `TYPE name` of each set, relative to the hostname. */
  sets: string[]
}

const MARKER_LABEL = '_gamekeeper'
const MARKER_VERSION = 'gamekeeper1'

export const hostnameOf = (name: string, zone: string) => `${name}.${zone}`
const markerName = (hostname: string) => `${MARKER_LABEL}.${hostname}`

/** Address records at the name itself and, where the game's clients look for one, an SRV beneath it. */
export function planRecords(
  server: AddressedServer,
  zone: Pick<Zone, 'targets' | 'ttl'>,
  hostname: string,
): ChangeableRecordSet[] {
  const { ttl, targets } = zone
  const sets: ChangeableRecordSet[] = []
  const v4 = targets.filter((target) => isIPv4(target))
  const v6 = targets.filter((target) => isIPv6(target))
  const [host] = targets.filter((target) => !isIPv4(target) && !isIPv6(target))
  if (v4.length > 0) sets.push({ name: hostname, type: 'A', ttl, records: v4.map((address) => ({ address })) })
  if (v6.length > 0) sets.push({ name: hostname, type: 'AAAA', ttl, records: v6.map((address) => ({ address })) })
  if (host) sets.push({ name: hostname, type: 'CNAME', ttl, records: [{ target: host }] })
  const { srv, port } = serviceOf(server)
  if (srv && port) {
    // An SRV must not point at an alias, so with a host name for a target it points there directly.
    const record = { priority: 0, weight: 0, port, target: host ?? hostname }
    sets.push({ name: `${srv}.${hostname}`, type: 'SRV', ttl, records: [record] })
  }
  return sets
}

export function connectAddress(server: AddressedServer, hostname: string): string {
  const { srv, port } = serviceOf(server)
  return srv || port === null ? hostname : `${hostname}:${port}`
}

/** A template of somebody's own may have the id of a game that we know: what it says counts. */
function serviceOf({ game: id, port, template }: AddressedServer): { srv: string | null; port: number | null } {
  const game: Game | undefined = id && Object.hasOwn(GAMES, id) ? GAMES[id as GameId] : undefined
  return {
    srv: template?.srv ?? game?.srv ?? null,
    port: port ?? template?.defaultPort ?? game?.defaultPort ?? null,
  }
}

export function markerSet(
  owner: Owner,
  hostname: string,
  sets: readonly ChangeableRecordSet[],
  ttl: number,
): ChangeableRecordSet {
  const made = sets.map((set) => `${set.type}:${relative(set.name, hostname)}`)
  const text = `v=${MARKER_VERSION} instance=${owner.instanceId} subdomain=${owner.subdomainId} sets=${made.join(',')}`
  return { name: markerName(hostname), type: 'TXT', ttl, records: [{ text }] }
}

function readMarker(set: RecordSet): Marker | null {
  if (set.type !== 'TXT' || set.records.length !== 1) return null
  const text = set.records[0]?.text ?? ''
  const fields = Object.fromEntries(
    text.split(' ').map((field) => [field.split('=', 1)[0], field.slice(field.indexOf('=') + 1)]),
  )
  if (fields.v !== MARKER_VERSION || !fields.instance || !fields.subdomain) return null
  return {
    instanceId: fields.instance,
    subdomainId: fields.subdomain,
    sets: (fields.sets ?? '').split(',').filter(Boolean),
  }
}

export interface Found {
  hostname: string
  /** Null where the marker is lost and only the database knows what we made. */
  marker: Marker | null
  /** What we made and is still there, the marker included. */
  sets: RecordSet[]
}

/** Everything in a zone that carries a marker of this instance. */
export function ownedIn(listing: ZoneListing, instanceId: string): (Found & { marker: Marker })[] {
  const byKey = setsByKey(listing)
  return listing.recordSets.flatMap((set) => {
    const marker = set.name.startsWith(`${MARKER_LABEL}.`) ? readMarker(set) : null
    if (marker?.instanceId !== instanceId) return []
    const hostname = set.name.slice(MARKER_LABEL.length + 1)
    const sets = marker.sets.flatMap((made) => byKey.get(keyOfMade(made, hostname)) ?? [])
    return [{ hostname, marker, sets: [...sets, set] }]
  })
}

/**
 * What of a subdomain is in the zone: what its marker names and, should somebody have removed or spoilt the marker, what
 * is still exactly as the provider once confirmed it. A marker of another instance is never ours.
 */
export function ownedAt(
  listing: ZoneListing,
  hostname: string,
  owner: { instanceId: string; confirmed: readonly ChangeableRecordSet[] },
): Found | undefined {
  const marked = ownedIn(listing, owner.instanceId).find((found) => found.hostname === hostname)
  const byKey = setsByKey(listing)
  const spoilt = owner.confirmed.length > 0 && !marked ? byKey.get(keyOf('TXT', markerName(hostname))) : undefined
  if (spoilt && readMarker(spoilt)) return undefined
  const unchanged = owner.confirmed.flatMap((set) => {
    const there = byKey.get(keyOf(set.type, set.name))
    return there && sameRecordSet(there, set) ? [there] : []
  })
  const sets = [...new Set([...(marked?.sets ?? []), ...unchanged, ...(spoilt ? [spoilt] : [])])]
  return sets.length > 0 ? { hostname, marker: marked?.marker ?? null, sets } : undefined
}

const keyOf = (type: string, name: string) => `${type} ${name}`
const setsByKey = (listing: ZoneListing) =>
  new Map(listing.recordSets.map((set): [string, RecordSet] => [keyOf(set.type, set.name), set]))

function keyOfMade(made: string, hostname: string): string {
  const [type = '', label = ''] = made.split(':')
  return keyOf(type, label === '@' ? hostname : `${label}.${hostname}`)
}

const relative = (name: string, hostname: string) => (name === hostname ? '@' : name.slice(0, -(hostname.length + 1)))

/** Types that others may not have at a name that is ours: players would be led elsewhere. */
const RIVALS: ReadonlySet<string> = new Set(['A', 'AAAA', 'CNAME', 'NS', 'DNAME'])

/** What was not made by us and stands in the way: for a new name, anything at all that somebody has there. */
export function foreignSets(
  listing: ZoneListing,
  hostname: string,
  wanted: readonly ChangeableRecordSet[],
  mine: Found | undefined,
): string[] {
  const ours = new Set(mine?.sets.map((set) => keyOf(set.type, set.name)))
  const wantsAlias = wanted.some((set) => set.type === 'CNAME')
  const taken = [...listing.recordSets, ...listing.others].filter(({ name, type }) => {
    if (ours.has(keyOf(type, name))) return false
    if (wanted.some((set) => set.name === name && set.type === type)) return true
    return name === hostname && (!mine || wantsAlias || RIVALS.has(type))
  })
  return taken.map(({ name, type }) => keyOf(type, name))
}

/** The changes that turn what is ours there into what is wanted; none where it is so already. */
export function changesFor(
  listing: ZoneListing,
  wanted: readonly ChangeableRecordSet[],
  mine: Found | undefined,
): Change[] {
  const present = setsByKey(listing)
  const keep = new Set(wanted.map((set) => keyOf(set.type, set.name)))
  const stale = (mine?.sets ?? []).filter((set) => !keep.has(keyOf(set.type, set.name))).map(absent)
  const changed = wanted.filter((set) => {
    const there = present.get(keyOf(set.type, set.name))
    return !there || !sameRecordSet(there, set)
  })
  return [...stale, ...changed]
}

/** The set without its records, which asks for its removal. */
export function absent(set: RecordSet): Change {
  return { name: set.name, type: set.type, ttl: set.ttl, records: [] } as unknown as Change
}

/** A record set for people to read. */
export function presentSet(set: ChangeableRecordSet): { name: string; type: string; ttl: number; values: string[] } {
  const values = set.records.map((record) => Object.values(record).join(' '))
  return { name: set.name, type: set.type, ttl: set.ttl, values }
}

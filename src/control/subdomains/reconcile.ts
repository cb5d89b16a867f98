// Compares a zone with the database: which of our records are missing, altered or orphaned. Records that are not ours
// are only considered where they are in the way. Pure: it finds; repairing is done elsewhere.
import { DNS_REASONS, type DnsFinding } from '../../contract/subdomains.ts'
import type { ZoneListing } from '../../dns/provider.ts'
import { type ChangeableRecordSet, sameRecordSet } from '../../dns/records.ts'
import type { SubdomainRow } from '../db/tables.ts'
import { type Found, foreignSets, hostnameOf, ownedIn } from './records.ts'

type WithFinding<T> = T & { finding: Omit<DnsFinding, 'repaired'> }

export interface ZonePlan {
  /** Subdomains that are not as they should be, and that work can put right. */
  repair: WithFinding<{ row: SubdomainRow }>[]
  /** Subdomains that records of others keep out. */
  conflicts: WithFinding<{ row: SubdomainRow }>[]
  /** Records of ours that belong to no subdomain. */
  orphans: WithFinding<{ hostname: string }>[]
}

export interface Expected {
  row: SubdomainRow
  wanted: readonly ChangeableRecordSet[]
  mine: Found | undefined
}

export function planZone(
  zone: string,
  listing: ZoneListing,
  expected: readonly Expected[],
  instanceId: string,
): ZonePlan {
  const plan: ZonePlan = { repair: [], conflicts: [], orphans: [] }
  for (const one of expected) {
    if (one.row.status === 'deleting' || one.row.status === 'withdrawn') continue
    const hostname = hostnameOf(one.row.name, one.row.zone)
    const found = differenceOf(listing, hostname, one)
    if (!found) continue
    const entry = { row: one.row, finding: { zone, hostname, ...found } }
    if (found.kind === 'conflict') plan.conflicts.push(entry)
    else plan.repair.push(entry)
  }
  const known = new Set(expected.map(({ row }) => row.id))
  const names = new Set(expected.map(({ row }) => hostnameOf(row.name, row.zone)))
  for (const { hostname, marker } of ownedIn(listing, instanceId)) {
    // The marker of a forerunner is replaced by the subdomain that has the name now.
    if (known.has(marker.subdomainId) || names.has(hostname)) continue
    const detail = 'Records that we made for a subdomain that is no more.'
    plan.orphans.push({ hostname, finding: { zone, hostname, kind: 'orphan', detail } })
  }
  return plan
}

function differenceOf(
  listing: ZoneListing,
  hostname: string,
  { row, wanted, mine }: Expected,
): Pick<DnsFinding, 'kind' | 'detail'> | undefined {
  if (foreignSets(listing, hostname, wanted, mine).length > 0) return { kind: 'conflict', detail: DNS_REASONS.conflict }
  const present = new Map(listing.recordSets.map((set) => [`${set.type} ${set.name}`, set]))
  const missing = wanted.find((set) => !present.has(`${set.type} ${set.name}`))
  const altered = wanted.find((set) => {
    const there = present.get(`${set.type} ${set.name}`)
    return there !== undefined && !sameRecordSet(there, set)
  })
  const set = missing ?? altered
  if (set) {
    const kind = missing ? 'missing' : 'altered'
    return { kind, detail: `The ${set.type} record of ${set.name} is ${kind}.` }
  }
  if (row.propagated_at !== null) return undefined
  return { kind: 'unanswered', detail: 'The name servers do not answer with it yet.' }
}

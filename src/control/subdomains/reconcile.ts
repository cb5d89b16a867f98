// Compares a zone with the database: what of ours is missing or altered, what of ours nobody owns. What we did not
// make is not even looked at. Planning is pure; repairing goes the way that every change goes.
import type { DnsFinding } from '../../contract/subdomains.ts'
import type { ZoneListing } from '../../dns/provider.ts'
import { type ChangeableRecordSet, sameRecordSet } from '../../dns/records.ts'
import type { SubdomainRow } from '../db/tables.ts'
import { type Found, hostnameOf, ownedIn } from './records.ts'

export interface ZonePlan {
  /** Subdomains whose records are not as they should be. */
  repair: { row: SubdomainRow; finding: Omit<DnsFinding, 'repaired'> }[]
  /** Records of ours that belong to no subdomain. */
  orphans: { found: Found; finding: Omit<DnsFinding, 'repaired'> }[]
}

export function planZone(
  zone: string,
  listing: ZoneListing,
  rows: readonly { row: SubdomainRow; wanted: readonly ChangeableRecordSet[] }[],
  instanceId: string,
): ZonePlan {
  const present = new Map(listing.recordSets.map((set) => [`${set.type} ${set.name}`, set]))
  const known = new Set(rows.map(({ row }) => row.id))
  const plan: ZonePlan = { repair: [], orphans: [] }
  for (const { row, wanted } of rows) {
    if (row.status === 'deleting') continue
    const hostname = hostnameOf(row.name, row.zone)
    const missing = wanted.filter((set) => !present.has(`${set.type} ${set.name}`))
    const altered = wanted.filter((set) => {
      const there = present.get(`${set.type} ${set.name}`)
      return there !== undefined && !sameRecordSet(there, set)
    })
    const [set] = [...missing, ...altered]
    if (!set) continue
    const kind = missing.length > 0 ? 'missing' : 'altered'
    plan.repair.push({
      row,
      finding: { zone, hostname, kind, detail: `The ${set.type} record of ${set.name} is ${kind}.` },
    })
  }
  for (const found of ownedIn(listing, instanceId)) {
    if (known.has(found.marker.subdomainId)) continue
    const detail = 'Records that we made for a subdomain that is no more.'
    plan.orphans.push({ found, finding: { zone, hostname: found.hostname, kind: 'orphan', detail } })
  }
  return plan
}

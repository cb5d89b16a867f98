// Subdomains and zones as callers see them.
import { DNS_REASONS, type DnsReason, type Subdomain, type ZoneInfo } from '../../contract/subdomains.ts'
import type { ServerRow, SubdomainRow } from '../db/tables.ts'
import { type AddressedServer, connectAddress, hostnameOf, planRecords, presentSet } from './records.ts'
import type { Zone } from './zone-config.ts'

export function presentSubdomain(row: SubdomainRow, server: AddressedServer, zone: Zone | undefined): Subdomain {
  const hostname = hostnameOf(row.name, row.zone)
  const reason = row.reason as DnsReason | null
  return {
    id: row.id,
    serverId: row.server_id,
    name: row.name,
    zone: row.zone,
    hostname,
    connect: connectAddress(server, hostname),
    status: row.status,
    reason: reason && { code: reason, detail: DNS_REASONS[reason] },
    records: zone ? planRecords(server, zone, hostname).map(presentSet) : [],
    propagatedAt: row.propagated_at === null ? null : new Date(row.propagated_at).toISOString(),
    createdAt: new Date(row.created_at).toISOString(),
  }
}

export function presentZone(zone: Zone, server: ServerRow, mine: readonly SubdomainRow[]): ZoneInfo {
  const limits = [zone.maxPerServer, server.limit_subdomains].filter((limit) => limit !== null)
  return {
    zone: zone.zone,
    provider: zone.config.provider,
    ttl: zone.ttl,
    targets: zone.targets,
    used: mine.filter((row) => row.zone === zone.zone).length,
    limit: limits.length > 0 ? Math.min(...limits) : null,
  }
}

// From the configured zones to the providers that serve them.
import { mkdirSync } from 'node:fs'
import { createCloudflare, createCloudflareGate } from '../../dns/cloudflare.ts'
import { createEmbeddedDns, type EmbeddedDns } from '../../dns/embedded/provider.ts'
import { createZoneFiles } from '../../dns/embedded/zonefile.ts'
import { createPowerDns } from '../../dns/powerdns.ts'
import type { DnsProvider, Endpoint } from '../../dns/provider.ts'
import { createRfc2136 } from '../../dns/rfc2136.ts'
import { type GuardedProvider, withCircuitBreaker } from './circuit-breaker.ts'
import type { Zone } from './zone-config.ts'

export interface Providers {
  /** The provider of a configured zone, behind a circuit breaker. */
  of(zone: string): DnsProvider
  /** The same, called in any case. */
  unguardedOf(zone: string): DnsProvider
  /** Where the embedded server answers, if there is one. */
  embedded: Endpoint | null
  close(): Promise<void>
}

/** Of the server that is our own, where a zone asks for it. */
interface EmbeddedSettings {
  host: string
  port: number
  directory: string
  /** By TCP, at once. */
  connections?: number
}

export async function openProviders(zones: readonly Zone[], options: EmbeddedSettings): Promise<Providers> {
  const embedded = await openEmbedded(zones, options)
  const gates = new Map<string, ReturnType<typeof createCloudflareGate>>()
  const byZone = new Map<string, DnsProvider | GuardedProvider>()
  for (const zone of zones) {
    const remote = createRemote(zone, gates)
    const provider = remote ? withCircuitBreaker(remote) : embedded
    if (provider) byZone.set(zone.zone, provider)
  }
  const of = (zone: string) => {
    const provider = byZone.get(zone)
    if (!provider) throw new Error(`the zone ${zone} is not configured`)
    return provider
  }
  return {
    of,
    unguardedOf(zone) {
      const provider = of(zone)
      return 'unguarded' in provider ? provider.unguarded : provider
    },
    embedded: embedded ? { host: embedded.host, port: embedded.port } : null,
    async close() {
      await Promise.all([...new Set(byZone.values())].map((provider) => provider.close()))
    },
  }
}

async function openEmbedded(
  zones: readonly Zone[],
  { host, port, directory, connections }: EmbeddedSettings,
): Promise<EmbeddedDns | null> {
  const own = zones.flatMap(({ zone, config }) => {
    if (config.provider !== 'embedded') return []
    const { nameServers, nameServerAddresses, contact, negativeTtl } = config
    return [{ zone, nameServers, nameServerAddresses, contact, negativeTtl }]
  })
  if (own.length === 0) return null
  mkdirSync(directory, { recursive: true })
  const tcp = connections === undefined ? {} : { connections }
  return createEmbeddedDns({ zones: own.map(withoutAbsent), store: createZoneFiles(directory), host, port, tcp })
}

function withoutAbsent<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
}

/** Null for a zone that is served by this process itself. Throws DnsProviderError for settings that can never work. */
export function createRemote(
  { config, credential }: Pick<Zone, 'config' | 'credential'>,
  gates = new Map<string, ReturnType<typeof createCloudflareGate>>(),
): DnsProvider | null {
  if (config.provider === 'powerdns') {
    return createPowerDns(withoutAbsent({ url: config.url, apiKey: credential, nameServers: config.nameServers }))
  }
  if (config.provider === 'rfc2136') {
    const { server, keyName, nameServers } = config
    return createRfc2136(withoutAbsent({ server, keyName, keySecret: credential, nameServers }))
  }
  if (config.provider === 'cloudflare') {
    // Cloudflare counts requests by token, so zones that share one share the queue.
    const gate = gates.get(credential) ?? createCloudflareGate()
    gates.set(credential, gate)
    return createCloudflare(withoutAbsent({ token: credential, baseUrl: config.baseUrl, gate }))
  }
  return null
}

// The embedded provider: an authoritative DNS server in this process, so that one machine with a delegated zone needs
// nothing else. Zones come from configuration, records from `apply`; the answer changes only once the disk has it.
import { type CallOptions, checkChanges, type DnsProvider, DnsProviderError } from '../provider.ts'
import { normaliseName } from '../records.ts'
import { type EmbeddedZone, type HeldZone, openZone } from './heldzone.ts'
import { createLimiter } from './limiter.ts'
import { createResponder } from './responder.ts'
import { listen, type TcpLimits } from './sockets.ts'
import { type ServedZone, serveZone, wireKey } from './zone.ts'
import type { ZoneStore } from './zonefile.ts'

export type { EmbeddedZone } from './heldzone.ts'

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
/** Where to ask a server that listens on every address of the machine. */
const LOOPBACK = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
])
const DEFAULT_TCP: TcpLimits = { idleMs: 5_000, connections: 256, connectionsPerAddress: 32 }

export async function createEmbeddedDns(options: EmbeddedOptions): Promise<EmbeddedDns> {
  const now = options.now ?? Date.now
  const held = new Map<string, HeldZone>()
  const served = new Map<string, ServedZone>()
  for (const config of options.zones) {
    const zone = await openZone(config, {
      store: options.store,
      now,
      publish: (name, recordSets) => served.set(wireKey(name), serveZone(name, recordSets)),
    })
    held.set(zone.zone, zone)
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

  return {
    kind: 'embedded',
    capabilities: { atomicChanges: Number.MAX_SAFE_INTEGER, onlyIfAbsent: 'atomic', minTtl: 0 },
    host: listening.host,
    port: listening.port,
    async list(zone, call = {}) {
      return { recordSets: structuredClone(zoneNamed(zone, call).recordSets()), others: [] }
    },
    async apply(zone, changes, call = {}) {
      const target = zoneNamed(zone, call)
      const work = target.apply(checkChanges(target.zone, changes), call.signal)
      await orAborted(work, call.signal)
    },
    async authorities(zone, call = {}) {
      zoneNamed(zone, call)
      return [{ host: LOOPBACK.get(listening.host) ?? listening.host, port: listening.port }]
    },
    close() {
      closed ??= Promise.all([listening.close(), ...[...held.values()].map((zone) => zone.settled())]).then(() => {})
      return closed
    },
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

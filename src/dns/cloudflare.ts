// Cloudflare by its API: one listing and one batch for a call, whatever the number of changes, because requests are
// counted. Records are "DNS only": behind the proxy a game server could not be reached.
import { type CloudflareBatch, type CloudflareRecord, planBatch, readListing } from './cloudflare-records.ts'
import { createGate, type Gate } from './gate.ts'
import { checkBaseUrl, checkCredential, faultOfStatus, type HttpAnswer, type HttpRequest, requestJson } from './http.ts'
import {
  type CallOptions,
  type Change,
  checkChanges,
  checkConflicts,
  type DnsProvider,
  DnsProviderError,
  type Endpoint,
  withTimeout,
} from './provider.ts'
import { normaliseName } from './records.ts'

export interface CloudflareOptions {
  /** With the permissions Zone:Read and DNS:Edit on the zones. */
  token: string
  baseUrl?: string
  timeoutMs?: number
  /** One token's requests are counted together: give providers that share a token the same gate. */
  gate?: Gate
  pageSize?: number
}

const BASE_URL = 'https://api.cloudflare.com/client/v4'
const DEFAULT_TIMEOUT_MS = 10_000
const DEFAULT_PAGE_SIZE = 1000
/** The limit of the smallest plan. */
const BATCH_OPERATIONS = 200
const MIN_TTL = 60

interface Zone {
  id: string
  nameServers: string[]
}

/** 1,200 requests in 5 minutes: 300 at once and 3 a second make no more than that in any 5 minutes. */
export function createCloudflareGate(): Gate {
  return createGate({ burst: 300, perSecond: 3, maxWaitMs: 2_000 })
}

export function createCloudflare(options: CloudflareOptions): DnsProvider {
  const headers = { authorization: `Bearer ${checkCredential('Cloudflare token', options.token)}` }
  const base = checkBaseUrl(options.baseUrl ?? BASE_URL)
  const gate = options.gate ?? createCloudflareGate()
  const zones = new Map<string, Zone>()

  const call = async (request: Pick<HttpRequest, 'method' | 'json' | 'signal'>, path: string) => {
    await gate.pass(request.signal)
    const answer = await requestJson({ ...request, url: `${base}${path}`, headers })
    if (answer.status >= 200 && answer.status < 300 && isSuccess(answer)) return answer.body as Page
    const fault = faultOf(answer)
    if (fault.kind === 'rate_limited') gate.shut(fault.retryAfterMs ?? 0)
    throw fault
  }

  const findZone = async (zone: string, { signal }: CallOptions): Promise<Zone> => {
    const known = zones.get(zone)
    if (known) return known
    const { result } = await call({ method: 'GET', signal }, `/zones?name=${encodeURIComponent(zone)}`)
    const [found] = result as { id: string; name_servers?: string[] }[]
    if (!found) throw new DnsProviderError('zone_missing', `Cloudflare has no zone ${zone} for this token.`)
    const made = { id: found.id, nameServers: found.name_servers ?? [] }
    zones.set(zone, made)
    return made
  }

  /** A zone that was removed and added again has another id: forget the one that is not found. */
  const inZone = async <R>(zone: string, options: CallOptions, work: (path: string) => Promise<R>): Promise<R> => {
    const { id } = await findZone(zone, options)
    try {
      return await work(`/zones/${encodeURIComponent(id)}/dns_records`)
    } catch (error) {
      if (error instanceof DnsProviderError && error.kind === 'zone_missing') zones.delete(zone)
      throw error
    }
  }

  const records = async (path: string, { signal }: CallOptions): Promise<CloudflareRecord[]> => {
    const all: CloudflareRecord[] = []
    const size = options.pageSize ?? DEFAULT_PAGE_SIZE
    for (let page = 1; ; page++) {
      const body = await call({ method: 'GET', signal }, `${path}?page=${page}&per_page=${size}`)
      all.push(...(body.result as CloudflareRecord[]))
      if (page >= (body.result_info?.total_pages ?? 1)) return all
    }
  }

  const apply = (zone: string, changes: Change[], options: CallOptions) =>
    inZone(zone, options, async (path) => {
      const present = await records(path, options)
      checkConflicts(readListing(present), changes)
      for (const batch of inSteps(planBatch(present, changes))) {
        await call({ method: 'POST', json: batch, signal: options.signal }, `${path}/batch`)
      }
    })

  return withTimeout<DnsProvider>(
    {
      kind: 'cloudflare',
      capabilities: { atomicChanges: 50, onlyIfAbsent: 'checked', minTtl: MIN_TTL },
      list: async (zone, options = {}) =>
        inZone(normaliseName(zone), options, async (path) => readListing(await records(path, options))),
      async apply(zone, changes, options = {}) {
        const checked = checkChanges(normaliseName(zone), changes, MIN_TTL)
        if (checked.length > 0) await apply(normaliseName(zone), checked, options)
      },
      async authorities(zone, options = {}): Promise<Endpoint[]> {
        const { nameServers } = await findZone(normaliseName(zone), options)
        return nameServers.map((host) => ({ host, port: 53 }))
      },
      close: async () => {},
    },
    options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
  )
}

interface Page {
  result: unknown
  result_info?: { total_pages?: number }
}

/** Within a batch Cloudflare deletes first, then replaces, then adds; cut into steps the order stays the same. */
function* inSteps(batch: CloudflareBatch): Generator<Partial<CloudflareBatch>> {
  const operations = (['deletes', 'puts', 'posts'] as const).flatMap((kind) =>
    batch[kind].map((operation) => ({ kind, operation })),
  )
  for (let from = 0; from < operations.length; from += BATCH_OPERATIONS) {
    const step = Object.groupBy(operations.slice(from, from + BATCH_OPERATIONS), ({ kind }) => kind)
    yield Object.fromEntries(
      Object.entries(step).map(([kind, list]) => [kind, list.map(({ operation }) => operation)]),
    ) as Partial<CloudflareBatch>
  }
}

function isSuccess({ body }: HttpAnswer): boolean {
  return (body as { success?: boolean } | undefined)?.success === true
}

/** A header that is no token at all; the token is unknown; it lacks a permission. */
const CREDENTIAL_CODES = [6003, 9109, 10_000]
/** The host has an A, AAAA or CNAME already; it has this CNAME; the record exists. */
const CONFLICT_CODES = [81_053, 81_054, 81_057, 81_058]

function faultOf(answer: HttpAnswer): DnsProviderError {
  const errors = (answer.body as { errors?: { code: number }[] } | undefined)?.errors ?? []
  const has = (codes: number[]) => errors.some(({ code }) => codes.includes(code))
  if (answer.status === 404) return new DnsProviderError('zone_missing', 'Cloudflare no longer has the zone.')
  if (has(CREDENTIAL_CODES)) return new DnsProviderError('refused', 'Cloudflare refused the token.')
  if (has(CONFLICT_CODES)) return new DnsProviderError('conflict', 'What Cloudflare holds stands against the change.')
  return faultOfStatus(answer)
}

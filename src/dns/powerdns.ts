// PowerDNS by its HTTP API. One PATCH holds every change of a call and is one transaction on the server's side.
import { checkBaseUrl, checkCredential, faultOfStatus, type HttpAnswer, requestJson } from './http.ts'
import { formatData, parseData } from './presentation.ts'
import {
  type CallOptions,
  type Change,
  checkChanges,
  checkConflicts,
  type DnsProvider,
  DnsProviderError,
  type Endpoint,
  withTimeout,
  type ZoneListing,
} from './provider.ts'
import { groupRecords, isRecordType, normaliseName } from './records.ts'

export interface PowerDnsOptions {
  /** Where the API listens, such as `http://127.0.0.1:8081`. */
  url: string
  apiKey: string
  serverId?: string
  /** Where it answers DNS. Default: the API's host, port 53. */
  nameServers?: Endpoint[]
  timeoutMs?: number
}

interface ApiRecordSet {
  name: string
  type: string
  ttl: number
  records: { content: string; disabled: boolean }[]
}

const DEFAULT_TIMEOUT_MS = 10_000

export function createPowerDns(options: PowerDnsOptions): DnsProvider {
  const headers = { 'x-api-key': checkCredential('PowerDNS API key', options.apiKey) }
  const base = `${checkBaseUrl(options.url)}/api/v1/servers/${encodeURIComponent(options.serverId ?? 'localhost')}`
  const urlOf = (zone: string) => `${base}/zones/${encodeURIComponent(`${zone}.`)}`

  const list = async (zone: string, { signal }: CallOptions): Promise<ZoneListing> => {
    const answer = await requestJson({ method: 'GET', url: urlOf(zone), headers, signal })
    if (answer.status !== 200) throw faultOf(zone, answer)
    const sets = (answer.body as { rrsets?: ApiRecordSet[] } | undefined)?.rrsets
    if (!Array.isArray(sets)) throw new DnsProviderError('server_error', 'PowerDNS answered without record sets.')
    return readListing(sets)
  }

  const apply = async (zone: string, changes: Change[], { signal }: CallOptions): Promise<void> => {
    if (changes.some((change) => change.onlyIfAbsent)) checkConflicts(await list(zone, { signal }), changes)
    const json = { rrsets: changes.map(toApi) }
    const answer = await requestJson({ method: 'PATCH', url: urlOf(zone), headers, json, signal })
    if (answer.status >= 200 && answer.status < 300) return
    // The API says 422 for a conflict and for nonsense alike: look whether what is there stands in the way.
    if (answer.status === 422) checkConflicts(await list(zone, { signal }), changes)
    throw faultOf(zone, answer)
  }

  return withTimeout<DnsProvider>(
    {
      kind: 'powerdns',
      capabilities: { atomicChanges: Number.MAX_SAFE_INTEGER, onlyIfAbsent: 'checked', minTtl: 0 },
      list: async (zone, call = {}) => list(normaliseName(zone), call),
      async apply(zone, changes, call = {}) {
        const checked = checkChanges(normaliseName(zone), changes)
        if (checked.length > 0) await apply(normaliseName(zone), checked, call)
      },
      authorities: async () => options.nameServers ?? [{ host: new URL(options.url).hostname, port: 53 }],
      close: async () => {},
    },
    options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
  )
}

function toApi(change: Change) {
  const key = { name: `${change.name}.`, type: change.type }
  if (change.records.length === 0) return { ...key, changetype: 'DELETE' }
  const records = change.records.map((data) => ({ content: formatData(change.type, data), disabled: false }))
  return { ...key, ttl: change.ttl, changetype: 'REPLACE', records }
}

/** Disabled records are not answered, so they do not count as there. */
function readListing(sets: ApiRecordSet[]): ZoneListing {
  const enabled = sets
    .map((set) => ({
      ...set,
      name: normaliseName(set.name),
      records: set.records.filter((record) => !record.disabled),
    }))
    .filter((set) => set.records.length > 0)
  const recordSets = groupRecords(
    enabled.flatMap(({ name, type, ttl, records }) =>
      isRecordType(type) ? records.map(({ content }) => ({ name, type, ttl, data: parseData(type, content) })) : [],
    ),
  )
  const others = enabled.filter(({ type }) => !isRecordType(type)).map(({ name, type }) => ({ name, type }))
  return { recordSets, others }
}

function faultOf(zone: string, answer: HttpAnswer): DnsProviderError {
  if (answer.status === 404) return new DnsProviderError('zone_missing', `PowerDNS has no zone ${zone}.`)
  return faultOfStatus(answer)
}

import type { QueryOf } from '../contract/operation.ts'
import {
  checkDns,
  createSubdomain,
  deleteSubdomain,
  listSubdomains,
  listZones,
  type NewSubdomain,
  readSubdomain,
  type Subdomain,
  type ZoneInfo,
} from '../contract/subdomains.ts'
import { sleep } from './backoff.ts'
import { isApiError } from './errors.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export type SubdomainQuery = QueryOf<typeof listSubdomains>
export type ZoneQuery = QueryOf<typeof listZones>
type Zones = AsyncGenerator<ZoneInfo, void, undefined>
type Subdomains = AsyncGenerator<Subdomain, void, undefined>

const POLL_MS = 500

export function createSubdomainsApi(transport: Transport) {
  const list = transport.method(
    listSubdomains,
    (serverId: string, query: SubdomainQuery = {}, options: CallOptions = {}) => ({
      params: { serverId },
      query,
      ...options,
    }),
  )
  const read = transport.method(readSubdomain, (serverId: string, subdomainId: string, options: CallOptions = {}) => ({
    params: { serverId, subdomainId },
    ...options,
  }))
  const zones = transport.method(listZones, (serverId: string, query: ZoneQuery = {}, options: CallOptions = {}) => ({
    params: { serverId },
    query,
    ...options,
  }))
  return {
    /** One page of where the server can have subdomains. */
    zones,
    allZones: (serverId: string, query: ZoneQuery = {}, options: CallOptions = {}): Zones =>
      itemsOf((pageQuery: ZoneQuery) => zones(serverId, pageQuery, options), query),
    /** One page, newest first. */
    list,
    /** Every subdomain of the server. */
    all: (serverId: string, query: SubdomainQuery = {}, options: CallOptions = {}): Subdomains =>
      itemsOf((pageQuery: SubdomainQuery) => list(serverId, pageQuery, options), query),
    read,
    /** Answers at once with the subdomain as `pending`. */
    create: transport.method(createSubdomain, (serverId: string, body: NewSubdomain, options: CallOptions = {}) => ({
      params: { serverId },
      body,
      ...options,
    })),
    /** Returns when the name servers answer with it, or it has failed. Ends with the signal of the options. */
    async waitUntilAnswered(serverId: string, subdomainId: string, options: CallOptions = {}): Promise<Subdomain> {
      for (;;) {
        const now = await read(serverId, subdomainId, options)
        if (now.status === 'failed' || (now.status === 'active' && now.propagatedAt !== null)) return now
        await sleep(POLL_MS, options.signal)
      }
    },
    /** Undefined once it is gone from DNS; the subdomain if the provider has not confirmed within 5 seconds. */
    delete: transport.method(deleteSubdomain, (serverId: string, subdomainId: string, options: CallOptions = {}) => ({
      params: { serverId, subdomainId },
      ...options,
    })),
    /** Returns when it is gone, from DNS and from the list, however long the provider takes. */
    async waitUntilGone(serverId: string, subdomainId: string, options: CallOptions = {}): Promise<void> {
      try {
        for (;;) {
          await read(serverId, subdomainId, options)
          await sleep(POLL_MS, options.signal)
        }
      } catch (error) {
        if (!isApiError(error, 'not_found')) throw error
      }
    },
  }
}

export function createDnsApi(transport: Transport) {
  return {
    /** Compares every zone with what it should hold, and puts it right if asked to. Needs a token for all servers. */
    check: transport.method(checkDns, (body: { repair?: boolean } = {}, options: CallOptions = {}) => ({
      body,
      ...options,
    })),
  }
}

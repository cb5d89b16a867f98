import type { BodyOf, QueryOf } from '../contract/operation.ts'
import {
  checkDns,
  createSubdomain,
  deleteSubdomain,
  listSubdomains,
  listZones,
  type NewSubdomain,
  readSubdomain,
  type Subdomain,
} from '../contract/subdomains.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export type SubdomainQuery = QueryOf<typeof listSubdomains>
type Subdomains = AsyncGenerator<Subdomain, void, undefined>

export function createSubdomainsApi(transport: Transport) {
  const one = (serverId: string, subdomainId: string, options: CallOptions = {}) => ({
    params: { serverId, subdomainId },
    ...options,
  })
  const list = transport.method(
    listSubdomains,
    (serverId: string, query: SubdomainQuery = {}, options: CallOptions = {}) => ({
      params: { serverId },
      query,
      ...options,
    }),
  )
  return {
    /** Where the server can have subdomains. */
    zones: transport.method(listZones, (serverId: string, options: CallOptions = {}) => ({
      params: { serverId },
      ...options,
    })),
    /** One page, newest first. */
    list,
    all: (serverId: string, query: SubdomainQuery = {}, options: CallOptions = {}): Subdomains =>
      itemsOf((pageQuery: SubdomainQuery) => list(serverId, pageQuery, options), query),
    read: transport.method(readSubdomain, one),
    create: transport.method(createSubdomain, (serverId: string, body: NewSubdomain, options: CallOptions = {}) => ({
      params: { serverId },
      body,
      ...options,
    })),
    /** Nothing once it is gone; the subdomain as it is on its way out when the provider takes its time. */
    delete: transport.method(deleteSubdomain, one),
    /** Compares DNS with what it should hold, and puts it right if asked to. Needs a token for all servers. */
    checkDns: transport.method(checkDns, (body: BodyOf<typeof checkDns> = {}, options: CallOptions = {}) => ({
      body,
      ...options,
    })),
  }
}

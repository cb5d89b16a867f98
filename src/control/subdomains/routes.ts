import { BASE_PATH } from '../../contract/operation.ts'
import {
  checkDns,
  createSubdomain,
  deleteSubdomain,
  listSubdomains,
  listZones,
  readSubdomain,
} from '../../contract/subdomains.ts'
import { type Api, serve } from '../http/route.ts'
import type { Subdomains } from './service.ts'

export function subdomainRoutes(api: Api, subdomains: Subdomains): void {
  serve(api, listZones, (call) => subdomains.zones(call.actor, call.params.serverId, call.query))
  serve(api, listSubdomains, (call) => subdomains.list(call.actor, call.params.serverId, call.query))
  serve(api, readSubdomain, (call) => subdomains.read(call.actor, call.params.serverId, call.params.subdomainId))
  serve(api, createSubdomain, (call) => subdomains.create(call.actor, call.params.serverId, call.body), {
    location: (made) => `${BASE_PATH}/subdomains/${made.serverId}/subdomains/${made.id}`,
  })
  serve(api, deleteSubdomain, (call) => subdomains.remove(call.actor, call.params.serverId, call.params.subdomainId), {
    status: (left) => (left ? 202 : 204),
  })
  serve(api, checkDns, (call) => subdomains.check(call.actor, call.body.repair ?? false))
}

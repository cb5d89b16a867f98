import { cancelJob, listJobs, readJob } from '../../contract/jobs.ts'
import { BASE_PATH } from '../../contract/operation.ts'
import {
  changeServer,
  createServer,
  deleteServer,
  listServers,
  type NewServer,
  planDeletion,
  readServer,
  undeleteServer,
} from '../../contract/servers.ts'
import { type Actor, requireAllServers } from '../http/actor.ts'
import { type Api, serve } from '../http/route.ts'
import type { Streams } from '../http/streams/open-streams.ts'
import { readOrFollow } from '../http/streams/state-stream.ts'
import type { Deletion } from './deletion.ts'
import type { ServerJobs } from './jobs.ts'
import type { Servers } from './service.ts'

export function serverRoutes(
  api: Api,
  { servers, deletion, jobs, streams }: { servers: Servers; deletion: Deletion; jobs: ServerJobs; streams: Streams },
): void {
  /** The word of the host: a tenant must not lift the limits of its own server. */
  async function requireLimitsScope(actor: Actor, limits: NewServer['limits'], serverId?: string): Promise<void> {
    if (limits === undefined) return
    await api.auth.authorize(actor, serverId, 'servers:admin')
    requireAllServers(actor)
  }

  serve(
    api,
    createServer,
    async (call) => {
      await requireLimitsScope(call.actor, call.body.limits)
      return servers.create(call.actor, call.body)
    },
    { location: (server) => `${BASE_PATH}/servers/${server.id}` },
  )
  serve(api, listServers, (call) => servers.list(call.actor, call.query))
  serve(api, readServer, (call) => servers.read(call.actor, call.params.serverId))
  serve(api, changeServer, async (call) => {
    const { serverId } = call.params
    await requireLimitsScope(call.actor, call.body.limits, serverId)
    return servers.change(call.actor, serverId, call.body)
  })
  serve(api, deleteServer, (call) => deletion.start(call.actor, call.params.serverId, call.body))
  serve(api, planDeletion, (call) => deletion.plan(call.actor, call.params.serverId))
  serve(api, undeleteServer, (call) => deletion.undelete(call.actor, call.params.serverId))
  serve(api, listJobs, (call) => jobs.list(call.actor, call.params.serverId, call.query))
  serve(api, readJob, (call) => {
    const { serverId, jobId } = call.params
    return readOrFollow(streams, call, 'job', {
      read: () => jobs.read(call.actor, serverId, jobId),
      follow: (signal) => jobs.follow(call.actor, serverId, jobId, signal),
    })
  })
  serve(api, cancelJob, (call) => jobs.cancel(call.actor, call.params.serverId, call.params.jobId))
}

import type { Job } from '../contract/jobs.ts'
import type { QueryOf } from '../contract/operation.ts'
import {
  changeServer,
  createServer,
  deleteServer,
  listServers,
  type NewServer,
  readServer,
  type Server,
  type ServerChange,
} from '../contract/servers.ts'
import { isApiError } from './errors.ts'
import { type WaitOptions, waitForJob } from './jobs.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export type ServerQuery = QueryOf<typeof listServers>

export function createServersApi(transport: Transport) {
  const list = transport.method(listServers, (query: ServerQuery = {}, options: CallOptions = {}) => ({
    query,
    ...options,
  }))
  const startDeletion = transport.method(deleteServer, (serverId: string, name: string, options: CallOptions = {}) => ({
    params: { serverId },
    body: { name },
    ...options,
  }))
  return {
    create: transport.method(createServer, (body: NewServer, options: CallOptions = {}) => ({ body, ...options })),
    /** One page, newest first. */
    list,
    /** Every server that the token can see. */
    all: (query: ServerQuery = {}, options: CallOptions = {}): AsyncGenerator<Server, void, undefined> =>
      itemsOf((pageQuery: ServerQuery) => list(pageQuery, options), query),
    read: transport.method(readServer, (serverId: string, options: CallOptions = {}) => ({
      params: { serverId },
      ...options,
    })),
    change: transport.method(changeServer, (serverId: string, body: ServerChange, options: CallOptions = {}) => ({
      params: { serverId },
      body,
      ...options,
    })),
    /** Asks for the deletion; `name` repeats the server's name. The job goes on in the background. */
    delete: startDeletion,
    /** Asks for the deletion and returns once the server is gone. */
    async deleteAndWait(serverId: string, name: string, options: WaitOptions = {}): Promise<void> {
      const job: Job = await startDeletion(serverId, name, options.signal ? { signal: options.signal } : {})
      try {
        await waitForJob(transport, serverId, job.id, options)
      } catch (error) {
        // The job goes with its server, in one step.
        if (!isApiError(error, 'not_found')) throw error
      }
    },
  }
}

import { type InstallRequest, installServer } from '../contract/games/install-operations.ts'
import type { Job } from '../contract/jobs.ts'
import type { QueryOf } from '../contract/operation.ts'
import {
  changeServer,
  createServer,
  deleteServer,
  listServers,
  type NewServer,
  planDeletion,
  readServer,
  type Server,
  type ServerChange,
  undeleteServer,
} from '../contract/servers.ts'
import { isApiError } from './errors.ts'
import { type WaitOptions, waitForJob } from './jobs.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export type ServerQuery = QueryOf<typeof listServers>

export interface DeleteOptions {
  /** For good, at once; also a server that is deleted already. */
  purge?: boolean
}

export function createServersApi(transport: Transport) {
  const list = transport.method(listServers, (query: ServerQuery = {}, options: CallOptions = {}) => ({
    query,
    ...options,
  }))
  const startDeletion = transport.method(
    deleteServer,
    (serverId: string, name: string, { purge, ...options }: DeleteOptions & CallOptions = {}) => ({
      params: { serverId },
      body: { name, ...(purge === undefined ? {} : { purge }) },
      ...options,
    }),
  )
  const startUndeletion = transport.method(undeleteServer, (serverId: string, options: CallOptions = {}) => ({
    params: { serverId },
    ...options,
  }))
  const read = transport.method(readServer, (serverId: string, options: CallOptions = {}) => ({
    params: { serverId },
    ...options,
  }))
  return {
    create: transport.method(createServer, (body: NewServer, options: CallOptions = {}) => ({ body, ...options })),
    /** One page, newest first. */
    list,
    /** Every server that the token can see. */
    all: (query: ServerQuery = {}, options: CallOptions = {}): AsyncGenerator<Server, void, undefined> =>
      itemsOf((pageQuery: ServerQuery) => list(pageQuery, options), query),
    read,
    change: transport.method(changeServer, (serverId: string, body: ServerChange, options: CallOptions = {}) => ({
      params: { serverId },
      body,
      ...options,
    })),
    /** Asks for the deletion; `name` repeats the server's name. The job goes on in the background. */
    delete: startDeletion,
    /** Asks for the deletion and returns once the server is deleted, or gone for good with `purge`. */
    async deleteAndWait(
      serverId: string,
      name: string,
      { purge, ...options }: DeleteOptions & WaitOptions = {},
    ): Promise<void> {
      const signal = options.signal ? { signal: options.signal } : {}
      const job: Job = await startDeletion(serverId, name, { ...(purge === undefined ? {} : { purge }), ...signal })
      try {
        await waitForJob(transport, serverId, job.id, options)
      } catch (error) {
        // The job of a purged server goes with it, in one step.
        if (!isApiError(error, 'not_found')) throw error
      }
    },
    /** What deleting it would free. */
    planDeletion: transport.method(planDeletion, (serverId: string, options: CallOptions = {}) => ({
      params: { serverId },
      ...options,
    })),
    /** Goes through the install steps of the template. The job goes on in the background. */
    install: transport.method(
      installServer,
      (serverId: string, body: InstallRequest = {}, options: CallOptions = {}) => ({
        params: { serverId },
        body,
        ...options,
      }),
    ),
    /** Brings a deleted server back. The job goes on in the background. */
    undelete: startUndeletion,
    /** Brings a deleted server back and returns it once it is ready. */
    async undeleteAndWait(serverId: string, options: WaitOptions = {}): Promise<Server> {
      const signal = options.signal ? { signal: options.signal } : {}
      const job: Job = await startUndeletion(serverId, signal)
      await waitForJob(transport, serverId, job.id, options)
      return read(serverId, signal)
    },
  }
}

import type { Agent } from '../../contract/agent.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import type { Job } from '../../contract/jobs.ts'
import type { Page } from '../../contract/schema.ts'
import type { NewServer, Server, ServerChange } from '../../contract/servers.ts'
import { newId } from '../../kit/ids.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Db, ServerRow, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import { type Actor, requireAllServers, sees } from '../http/actor.ts'
import { type Cursors, pageOf, pageRequest } from '../http/paging.ts'
import type { Streams } from '../http/streams.ts'
import { backOffMs, type JobContext, type Jobs } from '../jobs/runner.ts'
import { presentJob } from '../jobs/store.ts'
import { found, lockReadyServer } from './access.ts'
import { changedColumns, differences, newServerRow, present } from './present.ts'
import type { Quotas } from './quotas.ts'
import * as store from './store.ts'

export {
  findServer,
  lockReadyServer,
  lockReadyServers,
  lockVisibleServer,
  requireFinishedRestore,
  requireReadyServer,
  requireServer,
} from './access.ts'

export interface Servers {
  create(actor: Actor, request: NewServer): Promise<Server>
  list(actor: Actor, query: ServerQuery): Promise<Page<Server>>
  read(actor: Actor, serverId: string): Server | Promise<Server>
  change(actor: Actor, serverId: string, change: ServerChange): Promise<Server>
  /** Makes a server that only a backup still knows again, without its files. Answers false if it is there. */
  adopt(actor: Actor, serverId: string, name: string | null): Promise<boolean>
  startDeletion(actor: Actor, serverId: string, name: string): Promise<Job>
  /** Learns from the agent how much disk each server uses, and sees that it knows the quota. */
  measure(): Promise<void>
  /** Removes what a crash between folder and row has left. */
  sweep(): Promise<void>
}

export interface ServerQuery {
  limit?: number
  cursor?: string
  game?: string
  q?: string
}

/** What other parts have to say about, and do for, the change and the deletion of a server. */
export interface ServerPart {
  /** In the transaction that changes the server. */
  changed?(trx: Trx, actor: Actor, before: ServerRow, after: ServerRow): Promise<void>
  /** Throws if the server may not be deleted now. */
  check?(trx: Trx, serverId: string): Promise<void>
  /** Lets go of what the part keeps elsewhere. Safe to repeat; all of it is done before the row goes. */
  release?(serverId: string, signal: AbortSignal): Promise<void>
  /** Removes the part's rows, with the server's own. */
  remove?(trx: Trx, serverId: string): Promise<void>
}

export interface ServerDeps {
  db: Db
  agent: Pick<Agent, 'servers' | 'files'>
  activity: Activity
  jobs: Jobs
  streams: Streams
  cursors: Cursors
  clock: { now(): number }
  quotas: Quotas
  /** Asked at the time of use, since parts are made after the servers that they belong to. */
  parts: () => readonly ServerPart[]
}

const LIST = 'servers'
const DELETE = 'server.delete'
const STOP_WITHIN_MS = 60_000

export function createServers(deps: ServerDeps): Servers {
  const { db, agent, activity, jobs, streams, cursors, clock, quotas, parts } = deps

  async function deleteServer({ serverId, actor, signal, complete }: JobContext<unknown>): Promise<void> {
    await jobs.endAllOf(serverId, STOP_WITHIN_MS)
    for (const part of parts()) await part.release?.(serverId, signal)
    await agent.servers.remove({ serverId })
    await transact(db, {}, async (trx) => {
      const row = await lockServer(trx, serverId)
      for (const part of parts()) await part.remove?.(trx, serverId)
      await store.removeServerRow(trx, serverId)
      await activity.record(trx, actor, 'server.deleted', serverId, { name: row?.name ?? null })
      await complete(trx)
      onCommit(trx, () => streams.endForServer(serverId))
    })
  }

  jobs.register(DELETE, {
    run: deleteServer,
    // Half-deleted is no place to stop: it is tried until it is done.
    retryAfterMs: (_error, attempt) => backOffMs(attempt),
    cancellable: false,
    atOnce: 4,
  })

  return {
    async create(actor, request) {
      requireAllServers(actor)
      const now = clock.now()
      const row = newServerRow(newId('srv', now), request, now)
      // The folder first: a folder without a row is swept up at the next start, a row without a folder would be a broken promise.
      await agent.servers.create({ serverId: row.id })
      if (row.limit_disk_bytes !== null)
        await agent.files.setQuota({ serverId: row.id, quotaBytes: row.limit_disk_bytes })
      return transact(db, actor, async (trx) => {
        await store.insertServer(trx, row)
        await activity.record(trx, actor, 'server.created', row.id, { name: row.name, game: row.game, port: row.port })
        return present(row)
      })
    },

    async list(actor, query) {
      const request = pageRequest(cursors, LIST, query)
      if (actor.servers !== '*' && actor.servers.size === 0) return { data: [], nextCursor: null }
      const rows = await store.listServerRows(db, {
        before: request.after ? String(request.after[0]) : null,
        visible: actor.servers,
        limit: request.limit + 1,
        ...(query.game ? { game: query.game } : {}),
        ...(query.q ? { q: query.q } : {}),
      })
      return pageOf(rows, request, present, (row) => cursors.encode(LIST, [row.id]))
    },

    read(actor, serverId) {
      const row = sees(actor, serverId) ? store.findServer(db, serverId) : undefined
      return row instanceof Promise ? row.then((late) => present(found(late))) : present(found(row))
    },

    async change(actor, serverId, change) {
      const server = await transact(db, actor, async (trx) => {
        const before = await lockReadyServer(trx, actor, serverId)
        const columns = changedColumns(before, change)
        if (Object.keys(columns).length === 0) return present(before)
        const after = { ...before, ...columns, updated_at: clock.now() }
        await store.updateServer(trx, serverId, { ...columns, updated_at: after.updated_at })
        for (const part of parts()) await part.changed?.(trx, actor, before, after)
        await activity.record(trx, actor, 'server.changed', serverId, {
          changes: differences(present(before), present(after)),
        })
        return present(after)
      })
      if (change.limits?.diskBytes !== undefined) await quotas.apply(serverId)
      return server
    },

    async adopt(actor, serverId, name) {
      if (await store.findServer(db, serverId)) return false
      await agent.servers.create({ serverId })
      const row = newServerRow(serverId, { name: name ?? `Recovered ${serverId}` }, clock.now())
      return transact(db, {}, async (trx) => {
        if (!(await store.insertServerIfAbsent(trx, row))) return false
        await activity.record(trx, actor, 'server.created', serverId, { name: row.name, game: null, port: null })
        return true
      })
    },

    startDeletion: (actor, serverId, name) =>
      transact(db, actor, async (trx) => {
        const server = await lockReadyServer(trx, actor, serverId)
        if (name !== server.name) {
          const errors = [{ path: '/name', message: 'is not the name of the server' }]
          throw fail('invalid_request', { detail: 'The name in the body is not the name of the server.', errors })
        }
        for (const part of parts()) await part.check?.(trx, serverId)
        await store.updateServer(trx, serverId, { status: 'deleting', updated_at: clock.now() })
        await activity.record(trx, actor, 'server.deletion_started', serverId, { name })
        return presentJob(await jobs.enqueue(trx, actor, { kind: DELETE, serverId, input: {} }))
      }),

    async measure() {
      for (const serverId of await store.listServerIds(db)) {
        const server = await store.findServer(db, serverId)
        if (server?.status !== 'ready') continue
        const { usedBytes, quotaBytes } = await agent.files.usage({ serverId })
        if (quotaBytes !== server.limit_disk_bytes) await quotas.apply(serverId)
        await store.saveDiskUsage(db, serverId, usedBytes, clock.now())
      }
    },

    async sweep() {
      try {
        await agent.servers.sweep({ known: await store.listServerIds(db) })
      } catch (error) {
        // A machine that cannot be reached is swept another time; it must not keep the service from starting.
        if (!isFailure(error, 'agent_unreachable')) throw error
      }
    },
  }
}

import type { Agent } from '../../contract/agent.ts'
import { isFailure } from '../../contract/errors.ts'
import { DEFAULT_ENTRIES_MAX } from '../../contract/fixed-limits.ts'
import type { Template } from '../../contract/games/template-format.ts'
import type { Page } from '../../contract/schema.ts'
import type { NewServer, Server, ServerChange } from '../../contract/servers.ts'
import { newId } from '../../kit/ids.ts'
import type { Activity } from '../activity/service.ts'
import type { Db } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, requireAllServers, sees } from '../http/actor.ts'
import { type Cursors, pageOf, pageRequest } from '../http/paging.ts'
import type { Templates } from '../templates/service.ts'
import { found, lockReadyServer, requireStopped } from './access.ts'
import { type Adopt, createAdoption } from './adoption.ts'
import type { Quotas } from './disk-quota.ts'
import { changedColumns, differences, newServerRow, present } from './present.ts'
import { chooseRuntime } from './runtime-choice.ts'
import type { ServerPart } from './server-part.ts'
import { requireSleepable, type SleepSettings } from './sleep.ts'
import * as store from './store.ts'
import { changedVariables, changeVariables, NO_VARIABLES } from './variables.ts'

export {
  findServer,
  lockReadyServer,
  lockReadyServers,
  lockVisibleServer,
  requireFinishedRestore,
  requireReady,
  requireReadyServer,
  requireServer,
  requireServerFiles,
  requireStopped,
} from './access.ts'

export interface Servers {
  create(actor: Actor, request: NewServer): Promise<Server>
  list(actor: Actor, query: ServerQuery): Promise<Page<Server>>
  read(actor: Actor, serverId: string): Server | Promise<Server>
  change(actor: Actor, serverId: string, change: ServerChange): Promise<Server>
  adopt: Adopt
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
  deleted?: boolean
}

export type { ServerPart } from './server-part.ts'

export interface ServerDeps {
  db: Db
  agent: Pick<Agent, 'servers' | 'files'>
  activity: Activity
  cursors: Cursors
  clock: { now(): number }
  quotas: Quotas
  sleeps: SleepSettings
  templates: Pick<Templates, 'requireGame' | 'lockGame'>
  /** Asked at the time of use, since parts are made after the servers that they belong to. */
  parts: () => readonly ServerPart[]
}

const LIST = 'servers'
const DELETED_LIST = 'deleted servers'

export function createServers(deps: ServerDeps): Servers {
  const { db, agent, activity, cursors, clock, quotas, sleeps, templates, parts } = deps

  return {
    async create(actor, request) {
      requireAllServers(actor)
      const game = request.game ?? null
      const chosen = (template: Template | undefined) => ({
        ...changeVariables(actor, template, NO_VARIABLES, request.variables),
        runtime_choice: chooseRuntime(actor, {
          ...{ template, before: { runtime_choice: null }, wanted: request.runtime, isOtherGame: true },
        }),
      })
      // Before the folder, which would be left behind.
      const known = game === null ? undefined : await templates.requireGame(game)
      chosen(known)
      if (request.sleep) requireSleepable(known)
      const now = clock.now()
      const row = newServerRow(newId('srv', now), request, now)
      // The folder first: a folder without a row is swept up at the next start, a row without a folder would be a broken promise.
      await agent.servers.create({ serverId: row.id })
      const { limit_disk_bytes: quotaBytes, limit_entries: maxEntries } = row
      if (quotaBytes !== null || maxEntries !== DEFAULT_ENTRIES_MAX)
        await agent.files.setQuota({ serverId: row.id, quotaBytes, maxEntries })
      return transact(db, actor, async (trx) => {
        const template = game === null ? undefined : await templates.lockGame(trx, game)
        Object.assign(row, chosen(template))
        if (request.sleep) requireSleepable(template)
        await store.insertServer(trx, row)
        await activity.record(trx, actor, 'server.created', row.id, { name: row.name, game: row.game, port: row.port })
        return present(row)
      })
    },

    async list(actor, query) {
      const listName = query.deleted ? DELETED_LIST : LIST
      const request = pageRequest(cursors, listName, query)
      if (actor.servers !== '*' && actor.servers.size === 0) return { data: [], nextCursor: null }
      const rows = await store.listServerRows(db, {
        before: request.after ? String(request.after[0]) : null,
        visible: actor.servers,
        isDeleted: query.deleted ?? false,
        limit: request.limit + 1,
        ...(query.game ? { game: query.game } : {}),
        ...(query.q ? { q: query.q } : {}),
      })
      return pageOf(rows, request, present, (row) => cursors.encode(listName, [row.id]))
    },

    read(actor, serverId) {
      const row = sees(actor, serverId) ? store.findServer(db, serverId) : undefined
      return row instanceof Promise ? row.then((late) => present(found(late))) : present(found(row))
    },

    async change(actor, serverId, change) {
      const server = await transact(db, actor, async (trx) => {
        const before = await lockReadyServer(trx, actor, serverId)
        const columns = changedColumns(before, change)
        const isOtherGame = columns.game !== undefined
        if (change.runtime !== undefined) requireStopped(before)
        const isSleepChanged = columns.sleep_after_minutes !== undefined
        if (isOtherGame || isSleepChanged || change.variables || change.runtime !== undefined) {
          const { game, sleep_after_minutes: sleepMinutes } = { ...before, ...columns }
          const template = game === null ? undefined : await templates.lockGame(trx, game)
          Object.assign(columns, changedVariables(before, changeVariables(actor, template, before, change.variables)))
          const runtime_choice = chooseRuntime(actor, { template, before, wanted: change.runtime, isOtherGame })
          if (runtime_choice !== before.runtime_choice) Object.assign(columns, { runtime_choice })
          if (sleepMinutes !== null) requireSleepable(template)
        }
        if (Object.keys(columns).length === 0) return present(before)
        const after = { ...before, ...columns, updated_at: clock.now() }
        await store.updateServer(trx, serverId, { ...columns, updated_at: after.updated_at })
        for (const part of parts()) await part.changed?.(trx, actor, before, after)
        await activity.record(trx, actor, 'server.changed', serverId, {
          changes: differences(present(before), present(after)),
        })
        return present(after)
      })
      if (change.limits?.diskBytes !== undefined || change.limits?.entries !== undefined) await quotas.apply(serverId)
      if (change.sleep !== undefined) await sleeps.apply(serverId)
      return server
    },

    adopt: createAdoption(deps),

    async measure() {
      for (const serverId of await store.listServerIds(db)) {
        const server = await store.findServer(db, serverId)
        if (server?.status !== 'ready') continue
        const { usedBytes, quotaBytes, maxEntries } = await agent.files.usage({ serverId })
        if (quotaBytes !== server.limit_disk_bytes || maxEntries !== server.limit_entries) await quotas.apply(serverId)
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

import type { Logger } from 'pino'
import { fail, invalidField } from '../../contract/errors.ts'
import type { Page } from '../../contract/schema.ts'
import { DELETION_ANSWER_MS, type NewSubdomain, type Subdomain, type ZoneInfo } from '../../contract/subdomains.ts'
import { newId } from '../../kit/ids.ts'
import { createKeyedMutex } from '../../kit/waiting/mutex.ts'
import type { Activity } from '../activity/service.ts'
import { isUniqueViolation } from '../db/database.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Db, ServerRow, SubdomainRow, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, requireAllServers, SYSTEM } from '../http/actor.ts'
import { type Cursors, pageOf, pageOfWhole, pageRequest } from '../http/paging.ts'
import type { Jobs } from '../jobs/runner.ts'
import { lockReadyServer, lockVisibleServer, requireReady, requireServer, type ServerPart } from '../servers/service.ts'
import { type CheckResult, createCheck } from './check.ts'
import { NAME_FAULTS, nameFault, normaliseSubdomain, skeleton } from './names.ts'
import { presentSubdomain, presentZone } from './present.ts'
import type { Providers } from './providers.ts'
import { type AddressedServer, hostnameOf } from './records.ts'
import * as store from './store.ts'
import { createSync, OUT } from './sync.ts'
import { createWork } from './work.ts'
import type { Zone } from './zone-config.ts'

export interface Subdomains {
  /** What it has to say when a server is changed or deleted. */
  part: ServerPart
  zones(actor: Actor, serverId: string, query: { limit?: number; cursor?: string }): Promise<Page<ZoneInfo>>
  list(actor: Actor, serverId: string, query: { limit?: number; cursor?: string }): Promise<Page<Subdomain>>
  read(actor: Actor, serverId: string, subdomainId: string): Promise<Subdomain>
  create(actor: Actor, serverId: string, request: NewSubdomain): Promise<Subdomain>
  /** Resolves to undefined once it is gone, to the subdomain if it is still on its way out. */
  remove(actor: Actor, serverId: string, subdomainId: string): Promise<Subdomain | undefined>
  check(actor: Actor, repair: boolean): Promise<CheckResult>
  /** The regular comparison of every zone with the database, with repair. */
  reconcile(signal: AbortSignal): Promise<void>
}

export interface SubdomainDeps {
  db: Db
  activity: Activity
  jobs: Jobs
  cursors: Cursors
  clock: { now(): number }
  log: Logger
  zones: readonly Zone[]
  providers: Providers
  instanceId: string
  holdNameMs: number
}

/** Of a check there are two steps, listing the zones and waiting for repairs. Its 5 seconds leave the rest to the database. */
const CHECK_STEP_MS = 1750

export function createSubdomains(deps: SubdomainDeps): Subdomains {
  const { db, activity, jobs, cursors, clock } = deps
  const zones = new Map(deps.zones.map((zone) => [zone.zone, zone]))
  const mutex = createKeyedMutex()
  const sync = createSync({ ...deps, zones, mutex })
  const work = createWork({ db, jobs, sync })
  const check = createCheck({ ...deps, zoneNames: [...zones.keys()], mutex, sync, work: work.resume })

  const present = (row: SubdomainRow, server: AddressedServer) => presentSubdomain(row, server, zones.get(row.zone))

  async function requireSubdomain(handle: Db, serverId: string, subdomainId: string): Promise<SubdomainRow> {
    const row = await store.findSubdomain(handle, subdomainId)
    if (row?.server_id !== serverId) throw fail('not_found', 'No such subdomain.')
    return row
  }

  async function checkFree(trx: Trx, server: ServerRow, zone: Zone, name: string): Promise<void> {
    const fault = nameFault(name, zone)
    if (fault) throw invalidField('/name', NAME_FAULTS[fault])
    const mine = await store.listOfServer(trx, server.id)
    const inZone = mine.filter((row) => row.zone === zone.zone).length
    if (
      mine.length >= (server.limit_subdomains ?? Number.POSITIVE_INFINITY) ||
      inZone >= (zone.maxPerServer ?? Number.POSITIVE_INFINITY)
    ) {
      throw fail('subdomain_limit_reached', 'The server has reached its limit of subdomains.')
    }
    if (await store.findByName(trx, zone.zone, name)) throw taken()
    const shape = skeleton(name)
    if (await store.findLookalike(trx, zone.zone, shape, server.id)) {
      throw fail('subdomain_taken', 'The name looks like one that is taken.')
    }
    const until = await store.heldUntil(trx, { zone: zone.zone, skeleton: shape, serverId: server.id }, clock.now())
    if (until)
      throw fail('subdomain_taken', `The name was released and is held back until ${new Date(until).toISOString()}.`)
  }

  async function startRemoval(trx: Trx, actor: Actor, row: SubdomainRow): Promise<string> {
    await store.updateSubdomain(trx, row.id, { status: 'deleting', reason: null, updated_at: clock.now() })
    const properties = { subdomainId: row.id, hostname: hostnameOf(row.name, row.zone) }
    await activity.record(trx, actor, 'subdomain.deletion_started', row.server_id, properties)
    return work.start(trx, actor, row)
  }

  return {
    async zones(actor, serverId, query) {
      const server = await requireServer(db, actor, serverId)
      const mine = await store.listOfServer(db, serverId)
      const all = [...zones.values()].map((zone) => presentZone(zone, server, mine))
      return pageOfWhole(cursors, `zones ${serverId}`, query, all, ({ zone }) => zone)
    },

    async list(actor, serverId, query) {
      const server = await store.addressed(db, await requireServer(db, actor, serverId))
      const listName = `subdomains ${serverId}`
      const request = pageRequest(cursors, listName, query)
      const before = request.after ? String(request.after[0]) : null
      const rows = await store.listOfServer(db, serverId, { before, limit: request.limit + 1 })
      return pageOf(
        rows,
        request,
        (row) => present(row, server),
        (row) => cursors.encode(listName, [row.id]),
      )
    },

    async read(actor, serverId, subdomainId) {
      const server = await store.addressed(db, await requireServer(db, actor, serverId))
      return present(await requireSubdomain(db, serverId, subdomainId), server)
    },

    async create(actor, serverId, request) {
      const zone = zones.get(request.zone.toLowerCase().replace(/\.$/, ''))
      const name = normaliseSubdomain(request.name)
      try {
        return await transact(db, actor, async (trx) => {
          const server = await lockReadyServer(trx, actor, serverId)
          if (!zone) throw invalidField('/zone', 'is not a zone of this service')
          await store.lockZone(trx, zone.zone)
          await checkFree(trx, server, zone, name)
          const row = subdomainRow(serverId, zone.zone, name, clock.now())
          await store.insertSubdomain(trx, row)
          const properties = { subdomainId: row.id, hostname: hostnameOf(name, zone.zone) }
          await activity.record(trx, actor, 'subdomain.created', serverId, properties)
          await work.start(trx, actor, row)
          return present(row, await store.addressed(trx, server))
        })
      } catch (error) {
        if (isUniqueViolation(error)) throw taken(error)
        throw error
      }
    },

    async remove(actor, serverId, subdomainId) {
      const jobId = await transact(db, actor, async (trx) => {
        const server = await lockVisibleServer(trx, actor, serverId)
        if (server.status !== 'deleting') requireReady(server)
        const row = await requireSubdomain(trx, serverId, subdomainId)
        return row.status === 'deleting' ? work.ensure(trx, actor, row) : startRemoval(trx, actor, row)
      })
      await jobs.whenEnded(jobId, DELETION_ANSWER_MS)
      const left = await store.findSubdomain(db, subdomainId)
      return left && present(left, await store.addressed(db, await requireServer(db, actor, serverId)))
    },

    async check(actor, repair) {
      requireAllServers(actor)
      const result = await check.all({ repair, waitMs: CHECK_STEP_MS, signal: AbortSignal.timeout(CHECK_STEP_MS) })
      return transact(db, actor, async () => result)
    },

    async reconcile(signal) {
      await check.all({ repair: true, waitMs: 0, signal })
      await store.purgeHeldNames(db, clock.now())
    },

    part: {
      async changed(trx, actor, before, after) {
        if (before.port === after.port && before.game === after.game) return
        for (const row of await store.listOfServer(trx, after.id)) {
          if (OUT.has(row.status)) continue
          const changes = { status: 'pending', reason: null, propagated_at: null, updated_at: clock.now() } as const
          await store.updateSubdomain(trx, row.id, changes)
          await work.start(trx, actor, row)
        }
      },

      async withdraw(serverId, signal) {
        await transact(db, {}, async (trx) => {
          await lockServer(trx, serverId)
          for (const row of await store.listOfServer(trx, serverId)) {
            if (!OUT.has(row.status))
              await store.updateSubdomain(trx, row.id, { status: 'withdrawn', reason: null, updated_at: clock.now() })
          }
        })
        for (const row of await store.listOfServer(db, serverId)) await sync.run(SYSTEM, row.id, { signal })
      },

      async revive(trx, actor, serverId) {
        for (const row of await store.listOfServer(trx, serverId)) {
          if (row.status !== 'withdrawn') continue
          await store.updateSubdomain(trx, row.id, { status: 'pending', reason: null, updated_at: clock.now() })
          await work.start(trx, actor, row)
        }
      },

      async remove(trx, serverId) {
        for (const row of await store.listOfServer(trx, serverId)) {
          await store.removeSubdomain(trx, row.id)
          await store.holdName(trx, row, clock.now() + deps.holdNameMs)
        }
      },

      async frees(serverId) {
        const rows = await store.listOfServer(db, serverId)
        return { subdomains: rows.map(({ name, zone }) => hostnameOf(name, zone)).sort() }
      },
    },
  }
}

const taken = (cause?: unknown) => fail('subdomain_taken', 'The name is taken.', cause)
function subdomainRow(serverId: string, zone: string, name: string, now: number): SubdomainRow {
  return {
    id: newId('sub', now),
    server_id: serverId,
    name,
    zone,
    skeleton: skeleton(name),
    status: 'pending',
    reason: null,
    propagated_at: null,
    confirmed: null,
    job_id: null,
    created_at: now,
    updated_at: now,
  }
}

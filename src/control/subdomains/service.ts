import type { Logger } from 'pino'
import { fail } from '../../contract/errors.ts'
import type { Page } from '../../contract/schema.ts'
import {
  DNS_REASONS,
  type DnsFinding,
  type DnsReason,
  type NewSubdomain,
  type Subdomain,
  type ZoneInfo,
} from '../../contract/subdomains.ts'
import { isDnsFault } from '../../dns/provider.ts'
import { newId } from '../../kit/ids.ts'
import type { Activity } from '../activity/service.ts'
import { isUniqueViolation } from '../db/database.ts'
import type { Db, ServerRow, SubdomainRow, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, requireAllServers, SYSTEM } from '../http/actor.ts'
import { type Cursors, pageOf, pageRequest } from '../http/paging.ts'
import { backOffMs, type JobContext, type Jobs } from '../jobs/runner.ts'
import { requireReadyServer, requireServer, type ServerPart } from '../servers/service.ts'
import { NAME_FAULTS, nameFault, normaliseSubdomain, skeleton } from './names.ts'
import type { Providers } from './providers.ts'
import { planZone } from './reconcile.ts'
import { absent, connectAddress, hostnameOf, planRecords, presentSet } from './records.ts'
import * as store from './store.ts'
import { createSync, NotConfirmed, reasonOf } from './sync.ts'
import type { Zone } from './zones.ts'

export interface Subdomains {
  /** What it has to say when a server is changed or deleted. */
  part: ServerPart
  zones(actor: Actor, serverId: string): Promise<{ data: ZoneInfo[] }>
  list(actor: Actor, serverId: string, query: { limit?: number; cursor?: string }): Promise<Page<Subdomain>>
  read(actor: Actor, serverId: string, subdomainId: string): Promise<Subdomain>
  create(actor: Actor, serverId: string, request: NewSubdomain): Promise<Subdomain>
  /** Resolves to undefined once it is gone, to the subdomain if it is still on its way out. */
  remove(actor: Actor, serverId: string, subdomainId: string): Promise<Subdomain | undefined>
  check(actor: Actor, repair: boolean): Promise<{ zones: number; subdomains: number; findings: DnsFinding[] }>
  /** The regular comparison of every zone with the database, with repair. */
  reconcile(): Promise<void>
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

const SYNC = 'subdomain.sync'
const ANSWER_WITHIN_MS = 4500
const PROPAGATION_TRIES = 12

/** Not an error: the name servers do not answer with it yet, so it is asked again later. */
class NotYetAnswered extends Error {}

export function createSubdomains(deps: SubdomainDeps): Subdomains {
  const { db, activity, jobs, cursors, clock, log, providers, instanceId } = deps
  const zones = new Map(deps.zones.map((zone) => [zone.zone, zone]))
  const sync = createSync({ db, activity, providers, zones, instanceId, clock, log, holdNameMs: deps.holdNameMs })

  jobs.register<{ subdomainId: string }>(SYNC, {
    cancellable: false,
    atOnce: 8,
    async run({ input, actor, attempt }: JobContext<{ subdomainId: string }>) {
      const row = await store.findSubdomain(db, input.subdomainId)
      if (!row) return
      const result = await sync.run(actor, row)
      if (result.state === 'active' && !result.propagated && attempt < PROPAGATION_TRIES) throw new NotYetAnswered()
    },
    retryAfterMs(error, attempt) {
      if (reasonOf(error) === 'conflict' || reasonOf(error) === 'invalid') return null
      if (error instanceof NotYetAnswered || error instanceof NotConfirmed) return Math.min(backOffMs(attempt), 15_000)
      if (!isDnsFault(error)) return backOffMs(attempt)
      return Math.max(error.retryAfterMs ?? 0, error.retryable ? backOffMs(attempt) : 60_000)
    },
  })

  const enqueue = (trx: Trx, actor: Actor, row: SubdomainRow) =>
    jobs.enqueue(trx, actor, { kind: SYNC, serverId: row.server_id, input: { subdomainId: row.id } })

  function present(row: SubdomainRow, server: Pick<ServerRow, 'game' | 'port'>): Subdomain {
    const hostname = hostnameOf(row.name, row.zone)
    const zone = zones.get(row.zone)
    const reason = row.reason as DnsReason | null
    return {
      id: row.id,
      serverId: row.server_id,
      name: row.name,
      zone: row.zone,
      hostname,
      connect: connectAddress(server, hostname),
      status: row.status,
      reason: reason && { code: reason, detail: DNS_REASONS[reason] },
      records: zone ? planRecords(server, zone, hostname).map(presentSet) : [],
      propagatedAt: row.propagated_at === null ? null : new Date(row.propagated_at).toISOString(),
      createdAt: new Date(row.created_at).toISOString(),
    }
  }

  async function requireSubdomain(handle: Db, serverId: string, subdomainId: string): Promise<SubdomainRow> {
    const row = await store.findSubdomain(handle, subdomainId)
    if (row?.server_id !== serverId) throw fail('not_found', 'No such subdomain.')
    return row
  }

  async function checkFree(trx: Trx, server: ServerRow, zone: Zone, name: string): Promise<void> {
    const fault = nameFault(name, zone.reserved)
    if (fault) throw badField('/name', NAME_FAULTS[fault])
    const mine = await store.listOfServer(trx, server.id)
    const inZone = mine.filter((row) => row.zone === zone.zone).length
    if (
      mine.length >= (server.limit_subdomains ?? Number.POSITIVE_INFINITY) ||
      inZone >= (zone.maxPerServer ?? Number.POSITIVE_INFINITY)
    ) {
      throw fail('subdomain_limit_reached', 'The server has all the subdomains that it may have.')
    }
    if (await store.findByName(trx, zone.zone, name)) throw taken()
    if (await store.findLookalike(trx, zone.zone, skeleton(name), server.id)) {
      throw fail('subdomain_taken', 'The name looks like one that is taken.')
    }
    const until = await store.heldUntil(trx, zone.zone, name, server.id, clock.now())
    if (until)
      throw fail('subdomain_taken', `The name was released and is held back until ${new Date(until).toISOString()}.`)
  }

  async function startRemoval(trx: Trx, actor: Actor, row: SubdomainRow): Promise<void> {
    await store.updateSubdomain(trx, row.id, { status: 'deleting', reason: null, updated_at: clock.now() })
    const properties = { subdomainId: row.id, hostname: hostnameOf(row.name, row.zone) }
    await activity.record(trx, actor, 'subdomain.deletion_started', row.server_id, properties)
  }

  async function checkZone(zone: Zone, repair: boolean): Promise<{ subdomains: number; findings: DnsFinding[] }> {
    const provider = providers.of(zone.zone)
    const rows = await store.listOfZone(db, zone.zone)
    try {
      const wanted = await Promise.all(rows.map(async (row) => ({ row, wanted: await wantedOf(row) })))
      const plan = planZone(zone.zone, await provider.list(zone.zone), wanted, instanceId)
      const findings: DnsFinding[] = []
      for (const { row, finding } of plan.repair) {
        if (repair) await transact(db, SYSTEM, (trx) => repairOne(trx, row, finding.detail))
        findings.push({ ...finding, repaired: repair })
      }
      for (const { found, finding } of plan.orphans) {
        if (repair) await provider.apply(zone.zone, found.sets.map(absent))
        findings.push({ ...finding, repaired: repair })
      }
      return { subdomains: rows.length, findings }
    } catch (error) {
      const reason = reasonOf(error)
      if (reason === null) throw error
      log.warn({ err: error, zone: zone.zone }, 'a zone could not be compared')
      const finding = {
        zone: zone.zone,
        hostname: zone.zone,
        kind: 'unreachable',
        detail: DNS_REASONS[reason],
        repaired: false,
      } as const
      return { subdomains: rows.length, findings: [finding] }
    }
  }

  async function wantedOf(row: SubdomainRow) {
    const server = await db
      .selectFrom('servers')
      .select(['game', 'port'])
      .where('id', '=', row.server_id)
      .executeTakeFirst()
    return server ? sync.wantedSets(row, server) : []
  }

  async function repairOne(trx: Trx, row: SubdomainRow, detail: string): Promise<void> {
    await store.updateSubdomain(trx, row.id, { propagated_at: null, updated_at: clock.now() })
    const properties = { subdomainId: row.id, hostname: hostnameOf(row.name, row.zone), detail }
    await activity.record(trx, SYSTEM, 'subdomain.repaired', row.server_id, properties)
    await enqueue(trx, SYSTEM, row)
  }

  async function checkAll(repair: boolean) {
    const results = await Promise.all([...zones.values()].map((zone) => checkZone(zone, repair)))
    return {
      zones: zones.size,
      subdomains: results.reduce((sum, result) => sum + result.subdomains, 0),
      findings: results.flatMap((result) => result.findings),
    }
  }

  return {
    async zones(actor, serverId) {
      const server = await requireServer(db, actor, serverId)
      const mine = await store.listOfServer(db, serverId)
      const limitOf = (zone: Zone) => [zone.maxPerServer, server.limit_subdomains].filter((limit) => limit !== null)
      const data = [...zones.values()].map((zone) => ({
        zone: zone.zone,
        provider: zone.config.provider,
        ttl: zone.ttl,
        targets: zone.targets,
        used: mine.filter((row) => row.zone === zone.zone).length,
        limit: limitOf(zone).length > 0 ? Math.min(...limitOf(zone)) : null,
      }))
      return { data }
    },

    async list(actor, serverId, query) {
      const server = await requireServer(db, actor, serverId)
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
      const server = await requireServer(db, actor, serverId)
      return present(await requireSubdomain(db, serverId, subdomainId), server)
    },

    async create(actor, serverId, request) {
      const zone = zones.get(request.zone.toLowerCase().replace(/\.$/, ''))
      const name = normaliseSubdomain(request.name)
      try {
        return await transact(db, actor, async (trx) => {
          const server = await requireReadyServer(trx, actor, serverId)
          if (!zone) throw badField('/zone', 'is not a zone of this service')
          await store.lockServer(trx, serverId)
          await checkFree(trx, server, zone, name)
          const row = subdomainRow(serverId, zone.zone, name, clock.now())
          await store.insertSubdomain(trx, row)
          await activity.record(trx, actor, 'subdomain.created', serverId, {
            subdomainId: row.id,
            hostname: hostnameOf(name, zone.zone),
          })
          await enqueue(trx, actor, row)
          return present(row, server)
        })
      } catch (error) {
        // Two requests for one name at once: the index decides.
        if (isUniqueViolation(error)) throw taken(error)
        throw error
      }
    },

    async remove(actor, serverId, subdomainId) {
      const job = await transact(db, actor, async (trx) => {
        await requireServer(trx, actor, serverId)
        const row = await requireSubdomain(trx, serverId, subdomainId)
        if (row.status !== 'deleting') await startRemoval(trx, actor, row)
        return enqueue(trx, actor, row)
      })
      await jobs.whenEnded(job.id, ANSWER_WITHIN_MS)
      const left = await store.findSubdomain(db, subdomainId)
      return left && present(left, await requireServer(db, actor, serverId))
    },

    async check(actor, repair) {
      requireAllServers(actor)
      const result = await checkAll(repair)
      await transact(db, actor, async () => result)
      return result
    },

    async reconcile() {
      await checkAll(true)
      await store.purgeHeldNames(db, clock.now())
    },

    part: {
      async changed(trx, actor, before, after) {
        if (before.port === after.port && before.game === after.game) return
        for (const row of await store.listOfServer(trx, after.id)) {
          if (row.status === 'deleting') continue
          await store.updateSubdomain(trx, row.id, { status: 'pending', propagated_at: null, updated_at: clock.now() })
          await enqueue(trx, actor, row)
        }
      },

      async release(serverId) {
        for (const row of await store.listOfServer(db, serverId)) {
          if (row.status !== 'deleting') await transact(db, {}, (trx) => startRemoval(trx, SYSTEM, row))
          await sync.run(SYSTEM, { ...row, status: 'deleting' })
        }
      },
    },
  }
}

const taken = (cause?: unknown) => fail('subdomain_taken', 'The name is taken.', cause)
const badField = (path: string, message: string) =>
  fail('invalid_request', { detail: `The body is not valid: ${path} ${message}.`, errors: [{ path, message }] })

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
    created_at: now,
    updated_at: now,
  }
}

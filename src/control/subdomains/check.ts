// Compares every zone with the database, at intervals and on request.
import type { Logger } from 'pino'
import { isFailure } from '../../contract/errors.ts'
import { DNS_REASONS, type DnsFinding } from '../../contract/subdomains.ts'
import type { CallOptions } from '../../dns/provider.ts'
import type { KeyedMutex } from '../../kit/waiting/mutex.ts'
import type { Activity } from '../activity/service.ts'
import type { Db, SubdomainRow } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { SYSTEM } from '../http/actor.ts'
import { reasonOf } from './provider-records.ts'
import type { Providers } from './providers.ts'
import { planZone } from './reconcile.ts'
import { absent, ownedIn } from './records.ts'
import * as store from './store.ts'
import type { Sync } from './sync.ts'

export interface CheckDeps {
  db: Db
  activity: Activity
  providers: Providers
  zoneNames: readonly string[]
  mutex: KeyedMutex
  sync: Sync
  instanceId: string
  log: Logger
  /** Sees to it that the subdomain is worked on at once. Answers whether that was done, and well, within the time. */
  work(row: SubdomainRow, waitMs: number): Promise<boolean>
}

export interface CheckOptions extends CallOptions {
  repair: boolean
  /** How long to wait for repairs; they go on in any case. */
  waitMs: number
}

export interface CheckResult {
  zones: number
  subdomains: number
  findings: DnsFinding[]
}

export function createCheck(deps: CheckDeps) {
  const { db, activity, providers, zoneNames, mutex, sync, instanceId, log, work } = deps

  async function checkZone(
    zone: string,
    { repair, waitMs, ...call }: CheckOptions,
  ): Promise<Omit<CheckResult, 'zones'>> {
    try {
      // The zone before the rows: a subdomain that comes in between is missing from the first, never from the second.
      const listing = await providers.unguardedOf(zone).list(zone, call)
      const rows = await store.listOfZone(db, zone)
      const expected = rows.map(({ row, server }) => {
        return { row, wanted: sync.wantedSets(row, server), mine: sync.ownedAt(listing, row) }
      })
      const plan = planZone(zone, listing, expected, instanceId)
      if (!repair) {
        const all = [...plan.repair, ...plan.conflicts, ...plan.orphans]
        return { subdomains: rows.length, findings: all.map(({ finding }) => ({ ...finding, repaired: false })) }
      }
      // The provider answers: work that waits is done now, and work that has lost its job, by whatever mishap, gets one.
      for (const { row } of rows) if (row.status !== 'active' && row.status !== 'withdrawn') await work(row, 0)
      const findings = await Promise.all([
        ...plan.repair.map(async ({ row, finding }) => ({ ...finding, repaired: await work(row, waitMs) })),
        ...plan.conflicts.map(async ({ row, finding }) => {
          // So that it says so itself; while the records of others stand, nothing more can be done.
          if (row.status === 'active') await work(row, 0)
          return { ...finding, repaired: false }
        }),
        ...plan.orphans.map(async ({ hostname, finding }) => {
          return { ...finding, repaired: await removeOrphan(zone, hostname, call).catch(orFalse(call)) }
        }),
      ])
      return { subdomains: rows.length, findings }
    } catch (error) {
      const reason = call.signal?.aborted ? 'unreachable' : reasonOf(error)
      if (reason === null) throw error
      log.warn({ err: error, zone }, 'a zone could not be compared')
      const finding = {
        zone,
        hostname: zone,
        kind: 'unreachable',
        detail: DNS_REASONS[reason],
        repaired: false,
      } as const
      return { subdomains: (await store.listOfZone(db, zone)).length, findings: [finding] }
    }
  }

  /** In the turn of its name, and looked at anew: somebody may have taken the name meanwhile. */
  const removeOrphan = (zone: string, hostname: string, call: CallOptions): Promise<boolean> =>
    mutex(hostname, async () => {
      if (await store.findByName(db, zone, hostname.slice(0, -(zone.length + 1)))) return true
      const find = async () =>
        ownedIn(await providers.of(zone).list(zone, call), instanceId).find((one) => one.hostname === hostname)
      const found = await find()
      if (!found) return true
      await providers.of(zone).apply(zone, found.sets.map(absent), call)
      if (await find()) return false
      const removed = found.sets.map(({ type, name }) => `${type} ${name}`)
      await transact(db, {}, (trx) =>
        activity.record(trx, SYSTEM, 'subdomain.orphan_removed', null, { hostname, removed }),
      )
      return true
    })

  /** Nothing of ours can be done in a zone that is not configured; its subdomains must not go on saying that all is well. */
  async function checkUnconfigured(): Promise<DnsFinding[]> {
    const left = (await store.listZonesInUse(db)).filter((zone) => !zoneNames.includes(zone))
    for (const zone of left) {
      for (const { row } of await store.listOfZone(db, zone)) {
        if (row.status !== 'withdrawn' && row.reason !== 'zone_unconfigured')
          await sync.run(SYSTEM, row.id).catch(orFalse({}))
      }
    }
    const detail = DNS_REASONS.zone_unconfigured
    return left.map((zone) => ({ zone, hostname: zone, kind: 'unreachable', detail, repaired: false }))
  }

  return {
    async all(options: CheckOptions): Promise<CheckResult> {
      const unconfigured = await checkUnconfigured()
      const results = await Promise.all(zoneNames.map((zone) => checkZone(zone, options)))
      return {
        zones: zoneNames.length,
        subdomains: results.reduce((sum, result) => sum + result.subdomains, 0),
        findings: [...results.flatMap((result) => result.findings), ...unconfigured],
      }
    },
  }
}

/** For a step that may fail by itself: the fault is known and noted, or the caller has no more time. */
const orFalse = (call: CallOptions) => (error: unknown) => {
  if (reasonOf(error) === null && !isFailure(error, 'dns_unavailable') && !call.signal?.aborted) throw error
  return false
}

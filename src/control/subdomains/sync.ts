// Makes DNS match the database for one subdomain. Every step is idempotent, so that it does not matter where a crash or
// a failing provider interrupted it.
import type { Logger } from 'pino'
import { fail } from '../../contract/errors.ts'
import { DNS_REASONS, type DnsReason } from '../../contract/subdomains.ts'
import type { CallOptions } from '../../dns/provider.ts'
import type { ChangeableRecordSet } from '../../dns/records.ts'
import type { KeyedMutex } from '../../kit/waiting/mutex.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Db, SubdomainRow, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { createProviderRecords, type ProviderRecords, type ProviderRecordsDeps, reasonOf } from './provider-records.ts'
import { hostnameOf } from './records.ts'
import * as store from './store.ts'

export interface SyncDeps extends ProviderRecordsDeps {
  db: Db
  activity: Activity
  mutex: KeyedMutex
  clock: { now(): number }
  log: Logger
  holdNameMs: number
}

export type SyncResult =
  /** The provider has confirmed; `propagated` says whether the name servers answer with it. */
  { state: 'active'; propagated: boolean } | { state: 'gone' }

export interface Sync extends Pick<ProviderRecords, 'wantedSets' | 'ownedAt'> {
  /** Throws `dns_unavailable` with the fault as its cause; the row says so by then. */
  run(actor: Actor, subdomainId: string, call?: CallOptions): Promise<SyncResult>
}

/** Those that are not to be in DNS. */
export const OUT: ReadonlySet<SubdomainRow['status']> = new Set(['deleting', 'withdrawn'])

/** Somebody has to change something before it can succeed. */
const LASTING: ReadonlySet<DnsReason> = new Set(['conflict', 'invalid', 'refused', 'zone_missing', 'zone_unconfigured'])
/** Says of records that were confirmed before that they are right no more; any other fault says nothing about them. */
const UNDOING: ReadonlySet<DnsReason> = new Set(['conflict', 'invalid', 'zone_missing', 'zone_unconfigured'])

export function createSync(deps: SyncDeps): Sync {
  const { db, activity, mutex, clock, log } = deps

  const records = createProviderRecords(deps)
  const { wantedSets } = records

  const record = (
    trx: Trx,
    actor: Actor,
    row: SubdomainRow,
    event: Parameters<Activity['record']>[2],
    more: object = {},
  ) => {
    const properties = { subdomainId: row.id, hostname: hostnameOf(row.name, row.zone), ...more }
    return activity.record(trx, actor, event, row.server_id, properties)
  }

  async function noteFault(actor: Actor, row: SubdomainRow, reason: DnsReason, error: unknown): Promise<void> {
    log.warn({ err: error, subdomainId: row.id, zone: row.zone, reason }, 'DNS could not be brought up to date')
    await transact(db, {}, async (trx) => {
      await lockServer(trx, row.server_id)
      const current = await store.findSubdomain(trx, row.id)
      if (!current) return
      await store.updateSubdomain(trx, row.id, {
        reason,
        status: statusAfter(current, reason),
        updated_at: clock.now(),
      })
      // One entry for an outage, however often and in whatever way it is met again until it is over.
      const isNew = current.reason === null || (LASTING.has(reason) && current.reason !== reason)
      if (isNew) await record(trx, actor, row, 'subdomain.provider_failed', { reason, detail: DNS_REASONS[reason] })
    })
  }

  async function remove(actor: Actor, row: SubdomainRow, call: CallOptions): Promise<SyncResult> {
    await records.takeAway(row, call)
    await transact(db, {}, async (trx) => {
      await lockServer(trx, row.server_id)
      if (!(await store.removeSubdomain(trx, row.id))) return
      await store.holdName(trx, row, clock.now() + deps.holdNameMs)
      await record(trx, actor, row, 'subdomain.deleted')
    })
    return { state: 'gone' }
  }

  /** The row stays: its server can be brought back, and until then nobody else gets the name. */
  async function withdraw(row: SubdomainRow, call: CallOptions): Promise<SyncResult> {
    await records.takeAway(row, call)
    await store.updateIf(db, row, { confirmed: null, reason: null, propagated_at: null })
    return { state: 'gone' }
  }

  /** The row, if what was brought into DNS is still what is wanted. Nothing changes it before the transaction ends. */
  async function stillWanted(trx: Trx, row: SubdomainRow, sets: ChangeableRecordSet[]) {
    await lockServer(trx, row.server_id)
    const current = await store.findWithServer(trx, row.id)
    if (!current || OUT.has(current.row.status)) return undefined
    return JSON.stringify(wantedSets(current.row, current.server)) === JSON.stringify(sets) ? current.row : undefined
  }

  async function establish(
    actor: Actor,
    row: SubdomainRow,
    wanted: ChangeableRecordSet[],
    call: CallOptions,
  ): Promise<SyncResult> {
    // Confirmed once and wrong now: it does not count as active until it is right again.
    const beforeChange = async () => {
      if (row.status === 'active') await store.updateIf(db, row, { status: 'pending', propagated_at: null })
    }
    const changed = await records.put(row, wanted, call, beforeChange)
    const active = await transact(db, {}, async (trx) => {
      const current = await stillWanted(trx, row, wanted)
      if (!current) return undefined
      if (current.status === 'active' && current.reason === null) return current
      const changes = {
        status: 'active',
        reason: null,
        confirmed: JSON.stringify(wanted),
        updated_at: clock.now(),
      } as const
      await store.updateSubdomain(trx, row.id, changes)
      if (row.status === 'active' && changed.length > 0)
        await record(trx, actor, row, 'subdomain.repaired', { changed })
      else if (current.status !== 'active') await record(trx, actor, row, 'subdomain.activated')
      return { ...current, ...changes }
    })
    // Deleted or changed meanwhile: whoever did it has seen to it that the work goes on.
    if (!active) return { state: 'active', propagated: true }
    if (active.propagated_at !== null) return { state: 'active', propagated: true }
    const propagated = await records.isAnswered(row, wanted, call)
    if (propagated) {
      await transact(db, {}, async (trx) => {
        if (await stillWanted(trx, row, wanted))
          await store.updateSubdomain(trx, row.id, { propagated_at: clock.now() })
      })
    }
    return { state: 'active', propagated }
  }

  /** In the subdomain's turn, on what the database says now. */
  async function bringUpToDate(actor: Actor, subdomainId: string, call: CallOptions): Promise<SyncResult> {
    const found = await store.findWithServer(db, subdomainId)
    if (!found) return { state: 'gone' }
    const { row, server } = found
    try {
      if (row.status === 'deleting') return await remove(actor, row, call)
      if (row.status === 'withdrawn') return await withdraw(row, call)
      return await establish(actor, row, wantedSets(row, server), call)
    } catch (error) {
      const reason = reasonOf(error)
      if (reason === null) throw error
      await noteFault(actor, row, reason, error)
      throw fail('dns_unavailable', DNS_REASONS[reason], error)
    }
  }

  return {
    wantedSets,
    ownedAt: records.ownedAt,
    async run(actor, subdomainId, call = {}) {
      const row = await store.findSubdomain(db, subdomainId)
      if (!row) return { state: 'gone' }
      return mutex(hostnameOf(row.name, row.zone), () => bringUpToDate(actor, subdomainId, call))
    },
  }
}

function statusAfter(row: SubdomainRow, reason: DnsReason): SubdomainRow['status'] {
  if (OUT.has(row.status)) return row.status
  if (row.status === 'active' && !UNDOING.has(reason)) return 'active'
  return LASTING.has(reason) ? 'failed' : 'pending'
}

// Retention, applied: after a successful backup, or when somebody asks.
import type { Expiry, NewRetention, RetentionPolicy } from '../../../contract/backups/backup-plans.ts'
import { planExpiry } from '../../../contract/backups/expiry.ts'
import type { Activity } from '../../activity/service.ts'
import { lockServer } from '../../db/lock-server.ts'
import type { BackupRow, Db, RetentionRow, Trx } from '../../db/tables.ts'
import { transact } from '../../db/transact.ts'
import { type Actor, SYSTEM } from '../../http/actor.ts'
import { lockReadyServer, requireServer } from '../../servers/service.ts'
import { present } from '../present.ts'
import type { Removal } from '../removal.ts'
import * as store from '../store.ts'

/** What restores have taken for safety is kept until this many newer ones have succeeded, whatever the policy. */
const SAFETY_KEPT = 3

export interface RetentionService {
  read(actor: Actor, serverId: string): Promise<RetentionPolicy>
  set(actor: Actor, serverId: string, policy: NewRetention): Promise<RetentionPolicy>
  apply(actor: Actor, serverId: string, dryRun: boolean): Promise<Expiry>
  /** In the transaction that ends a backup or a restore well. */
  afterSuccess(trx: Trx, serverId: string): Promise<void>
}

export function createRetention(deps: {
  db: Db
  activity: Activity
  removal: Removal
  clock: { now(): number }
}): RetentionService {
  const { db, activity, removal, clock } = deps

  async function plan(handle: Db, serverId: string): Promise<{ expired: BackupRow[]; keptCount: number }> {
    const rows = await store.completedOf(handle, serverId)
    const policy = policyOf(await findRetention(handle, serverId))
    const regular = rows.filter((row) => row.origin !== 'safety')
    // A restore's own safety backup ends with this plan: what it is about to restore must outlive it.
    const inUse = await store.beingRestored(handle)
    const expired = [
      ...planExpiry(regular.map(candidate), policy).map(({ row }) => row),
      ...outlivedSafety(rows),
    ].filter((row) => !inUse.has(row.id))
    return { expired, keptCount: rows.length - expired.length }
  }

  async function expire(trx: Trx, actor: Actor, rows: readonly BackupRow[]): Promise<void> {
    for (const row of rows) await removal.remove(trx, actor, row, 'backup.expired')
  }

  return {
    async read(actor, serverId) {
      await requireServer(db, actor, serverId)
      return policyOf(await findRetention(db, serverId))
    },

    set: (actor, serverId, request) =>
      transact(db, actor, async (trx) => {
        await lockReadyServer(trx, actor, serverId)
        const before = policyOf(await findRetention(trx, serverId))
        const row = retentionRow(serverId, request, clock.now())
        await saveRetention(trx, row)
        const after = policyOf(row)
        await activity.record(trx, actor, 'retention.changed', serverId, { from: before, to: after })
        return after
      }),

    apply: (actor, serverId, dryRun) =>
      transact(db, actor, async (trx) => {
        await lockReadyServer(trx, actor, serverId)
        const { expired, keptCount } = await plan(trx, serverId)
        if (!dryRun) await expire(trx, actor, expired)
        return { dryRun, expired: expired.map(present), keptCount }
      }),

    async afterSuccess(trx, serverId) {
      await lockServer(trx, serverId)
      const { expired } = await plan(trx, serverId)
      await expire(trx, SYSTEM, expired)
    },
  }
}

/** A restore that failed or was cancelled has replaced nothing, so its safety backup makes no older one needless. */
function outlivedSafety(newestFirst: readonly BackupRow[]): BackupRow[] {
  const safety = newestFirst.filter((row) => row.origin === 'safety')
  const oldestKept = safety.filter((row) => row.replaced_at !== null)[SAFETY_KEPT - 1]
  return oldestKept ? safety.filter((row) => row.id < oldestKept.id && row.locked === 0) : []
}

const candidate = (row: BackupRow) => ({ id: row.id, createdAt: row.created_at, isLocked: row.locked === 1, row })

function findRetention(db: Db, serverId: string): Promise<RetentionRow | undefined> {
  return db.selectFrom('retention').selectAll().where('server_id', '=', serverId).executeTakeFirst()
}

async function saveRetention(trx: Trx, { server_id, ...rules }: RetentionRow): Promise<void> {
  await trx
    .insertInto('retention')
    .values({ server_id, ...rules })
    .onConflict((conflict) => conflict.column('server_id').doUpdateSet(rules))
    .execute()
}

export async function removeRetention(trx: Trx, serverId: string): Promise<void> {
  await trx.deleteFrom('retention').where('server_id', '=', serverId).execute()
}

function retentionRow(serverId: string, request: NewRetention, now: number): RetentionRow {
  return {
    server_id: serverId,
    keep_last: request.keepLast ?? null,
    keep_hourly: request.keepHourly ?? null,
    keep_daily: request.keepDaily ?? null,
    keep_weekly: request.keepWeekly ?? null,
    keep_monthly: request.keepMonthly ?? null,
    updated_at: now,
  }
}

function policyOf(row: RetentionRow | undefined): RetentionPolicy {
  return {
    keepLast: row?.keep_last ?? null,
    keepHourly: row?.keep_hourly ?? null,
    keepDaily: row?.keep_daily ?? null,
    keepWeekly: row?.keep_weekly ?? null,
    keepMonthly: row?.keep_monthly ?? null,
  }
}

import type { Backup, NewBackup } from '../../contract/backups/backups.ts'
import { fail } from '../../contract/errors.ts'
import type { Page } from '../../contract/schema.ts'
import type { Activity } from '../activity/service.ts'
import type { Changes } from '../db/row-changes.ts'
import type { BackupRow, Db, ServerRow, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { type Cursors, pageOf, pageRequest } from '../http/paging.ts'
import { followRow } from '../http/streams/state-stream.ts'
import type { Jobs } from '../jobs/runner.ts'
import { findJob } from '../jobs/store.ts'
import {
  lockReadyServer,
  requireFinishedRestore,
  requireReadyServer,
  requireServer,
  type ServerPart,
} from '../servers/service.ts'
import type { LockKeeper } from './locks.ts'
import { BACKUP } from './making.ts'
import { newBackupRow, noSuchBackup, present } from './present.ts'
import type { Removal } from './removal.ts'
import { removeRetention } from './retention/retention.ts'
import { removeSchedulesOf } from './schedules/schedule-store.ts'
import * as store from './store.ts'

export interface Backups {
  /** What it has to say when a server is deleted. */
  part: ServerPart
  create(actor: Actor, serverId: string, request: NewBackup): Promise<Backup>
  /** The same, in a transaction that has locked the server. */
  start(trx: Trx, actor: Actor, server: ServerRow, request: NewBackup, origin?: BackupRow['origin']): Promise<Backup>
  list(
    actor: Actor,
    serverId: string,
    query: { limit?: number; cursor?: string; status?: BackupRow['status'] },
  ): Promise<Page<Backup>>
  read(actor: Actor, serverId: string, backupId: string): Promise<Backup>
  /** The backup each time something about it changes, until it has ended; an empty step is a sign of life. */
  follow(actor: Actor, serverId: string, backupId: string, signal: AbortSignal): AsyncGenerator<Backup | null>
  /** Never a toggle: asking twice for the same is asking once. */
  setLock(actor: Actor, serverId: string, backupId: string, isLocked: boolean): Promise<Backup>
  remove(actor: Actor, serverId: string, backupId: string): Promise<undefined>
}

export function createBackups(deps: {
  db: Db
  activity: Activity
  jobs: Jobs
  removal: Removal
  locks: LockKeeper
  changes: Changes
  cursors: Cursors
  clock: { now(): number }
}): Backups {
  const { db, activity, jobs, removal, locks, changes, cursors, clock } = deps

  async function requireBackup(handle: Db, serverId: string, backupId: string): Promise<store.ShownBackup> {
    const row = await store.findBackup(handle, serverId, backupId)
    if (!row) throw noSuchBackup()
    return row
  }

  async function takeSlot(trx: Trx, server: ServerRow): Promise<void> {
    requireFinishedRestore(server)
    if ((await store.activeJobs(trx, server.id, store.RESTORES)).length > 0)
      throw fail('server_busy', 'A restore of this server is under way.')
    const limit = server.limit_backups
    if (limit !== null && (await store.countAgainstLimit(trx, server.id)) >= limit)
      throw fail('backup_limit_reached', `The server has reached its limit of ${limit} backups.`)
    await jobs.requireRoom(trx, server.id)
  }

  const start: Backups['start'] = async (trx, actor, server, request, origin = 'request') => {
    const row = newBackupRow(server.id, request, clock.now(), origin)
    await takeSlot(trx, server)
    const job = await jobs.enqueue(trx, actor, { kind: BACKUP, serverId: server.id, input: { backupId: row.id } })
    await store.insertBackup(trx, { ...row, job_id: job.id })
    await activity.record(trx, actor, 'backup.started', server.id, {
      backupId: row.id,
      name: row.name,
      isLocked: row.locked === 1,
    })
    return present(row)
  }

  async function liftInStore(actor: Actor, serverId: string, backupId: string): Promise<void> {
    await requireReadyServer(db, actor, serverId)
    const row = await requireBackup(db, serverId, backupId)
    if (row.status === 'completed' && row.locked === 1) await locks.keep(serverId, backupId, false)
  }

  /** Gone for its owner at once; what is under way is told to stop, and cleans up when it has. */
  async function cancel(trx: Trx, actor: Actor, row: BackupRow): Promise<void> {
    if (row.origin === 'safety') throw fail('server_busy', 'It is part of a restore that is under way.')
    await store.updateBackup(trx, row.id, { deleted_at: clock.now() })
    changes.tellAfter(trx, row.id)
    await activity.record(trx, actor, 'backup.cancelled', row.server_id, { backupId: row.id, name: row.name })
    const job = row.job_id === null ? undefined : await findJob(trx, row.server_id, row.job_id)
    if (job && (job.status === 'queued' || job.status === 'running')) await jobs.cancel(trx, job)
    else await removal.finish(trx, row)
  }

  /** In the turn of the backup: the store and the database are told in the order in which they were asked. */
  const setLock: Backups['setLock'] = async (actor, serverId, backupId, isLocked) => {
    // Where a crash comes between the two, one of them still has the lock, and the lock counts.
    if (!isLocked) await liftInStore(actor, serverId, backupId)
    const backup = await transact(db, actor, async (trx) => {
      await lockReadyServer(trx, actor, serverId)
      const row = await requireBackup(trx, serverId, backupId)
      const locked = isLocked ? 1 : 0
      if (row.locked === locked) return present(row)
      await store.updateBackup(trx, backupId, { locked })
      changes.tellAfter(trx, backupId)
      const event = isLocked ? 'backup.locked' : 'backup.unlocked'
      await activity.record(trx, actor, event, serverId, { backupId, name: row.name })
      return present({ ...row, locked })
    })
    if (isLocked && backup.status === 'completed') await locks.keep(serverId, backupId, true)
    return backup
  }

  return {
    start,

    create: (actor, serverId, request) =>
      transact(db, actor, async (trx) => start(trx, actor, await lockReadyServer(trx, actor, serverId), request)),

    async list(actor, serverId, query) {
      await requireServer(db, actor, serverId)
      const listName = `backups ${serverId}`
      const request = pageRequest(cursors, listName, query)
      const before = request.after ? String(request.after[0]) : null
      const filter = { before, limit: request.limit + 1, ...(query.status ? { status: query.status } : {}) }
      const rows = await store.listBackupRows(db, serverId, filter)
      return pageOf(rows, request, present, (row) => cursors.encode(listName, [row.id]))
    },

    async read(actor, serverId, backupId) {
      await requireServer(db, actor, serverId)
      return present(await requireBackup(db, serverId, backupId))
    },

    async *follow(actor, serverId, backupId, signal) {
      await requireServer(db, actor, serverId)
      using changed = changes.watch(backupId)
      const first = await requireBackup(db, serverId, backupId)
      // Its progress is its job's.
      if (first.job_id !== null) changed.add(first.job_id)
      const read = () => store.findBackup(db, serverId, backupId)
      for await (const row of followRow(first, { changed, read, signal })) yield row && present(row)
    },

    setLock: (actor, serverId, backupId, isLocked) =>
      locks.inTurn(backupId, () => setLock(actor, serverId, backupId, isLocked)),

    remove: (actor, serverId, backupId) =>
      transact(db, actor, async (trx) => {
        await lockReadyServer(trx, actor, serverId)
        const row = await requireBackup(trx, serverId, backupId)
        if (row.locked === 1) throw fail('backup_locked', 'The backup is locked. Unlock it first.')
        if ((await store.beingRestored(trx)).has(backupId))
          throw fail('server_busy', 'It is being restored. Cancel the restore, or wait for it to finish.')
        if (row.status === 'queued' || row.status === 'running') await cancel(trx, actor, row)
        else await removal.remove(trx, actor, row, 'backup.deleted')
        return undefined
      }),

    part: {
      async check(trx, serverId, { isPurge }) {
        if (await store.hasLocked(trx, serverId))
          throw fail('backup_locked', 'The server has locked backups. Unlock or delete them first.')
        if (isPurge && (await store.isRestoredElsewhere(trx, serverId)))
          throw fail('server_busy', 'A backup of this server is being restored into another.')
      },

      release: (serverId) => removal.removeAllOf(serverId),

      frees: async (serverId) => ({ backups: await store.totalsOf(db, serverId) }),
      lockedCount: (serverId) => store.countLocked(db, serverId),

      async remove(trx, serverId) {
        await store.removeRowsOf(trx, serverId, clock.now())
        await removeRetention(trx, serverId)
        await removeSchedulesOf(trx, serverId)
      },
    },
  }
}

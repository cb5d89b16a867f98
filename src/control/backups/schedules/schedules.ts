import type { Logger } from 'pino'
import type { Agent } from '../../../contract/agent.ts'
import type { NewSchedule, Schedule, ScheduleChange } from '../../../contract/backups/backup-plans.ts'
import type { Rehearsal } from '../../../contract/backups/rehearsals.ts'
import { type ErrorCode, fail, isFailure } from '../../../contract/errors.ts'
import type { Page } from '../../../contract/schema.ts'
import { newId } from '../../../kit/ids.ts'
import type { Activity } from '../../activity/service.ts'
import { isUniqueViolation } from '../../db/database.ts'
import { lockServer } from '../../db/lock-server.ts'
import type { BackupRow, Db, ScheduleRow, ServerRow, Trx } from '../../db/tables.ts'
import { transact } from '../../db/transact.ts'
import { type Actor, SYSTEM } from '../../http/actor.ts'
import { type Cursors, pageOfWhole } from '../../http/paging.ts'
import { lockReadyServer, requireServer } from '../../servers/service.ts'
import { requireShort } from '../present.ts'
import type { Rehearsals } from '../rehearsals.ts'
import type { Backups } from '../service.ts'
import { completedOf } from '../store.ts'
import { checkSchedule, nameFor, nextRun } from './cron.ts'
import * as store from './schedule-store.ts'

export interface Schedules {
  list(actor: Actor, serverId: string, query: { limit?: number; cursor?: string }): Promise<Page<Schedule>>
  read(actor: Actor, serverId: string, scheduleId: string): Promise<Schedule>
  create(actor: Actor, serverId: string, request: NewSchedule): Promise<Schedule>
  change(actor: Actor, serverId: string, scheduleId: string, change: ScheduleChange): Promise<Schedule>
  remove(actor: Actor, serverId: string, scheduleId: string): Promise<undefined>
  /** Starts what is due. One that was missed, however often, runs once. */
  tick(): Promise<void>
}

const SCHEDULES_MAX = 50
const BUSY_RETRY_MS = 60_000

export function createSchedules(deps: {
  db: Db
  agent: Pick<Agent, 'backups'>
  activity: Activity
  backups: Pick<Backups, 'start'>
  rehearsals: Pick<Rehearsals, 'enqueue'>
  cursors: Cursors
  clock: { now(): number }
  log: Logger
}): Schedules {
  const { db, agent, activity, backups, rehearsals, cursors, clock, log } = deps

  async function requireSchedule(handle: Db, serverId: string, id: string): Promise<ScheduleRow> {
    const row = await store.findSchedule(handle, serverId, id)
    if (!row) throw fail('not_found', 'No such schedule.')
    return row
  }

  /** Since its own last backup, which left out the same; since the newest of any kind where that is gone. */
  async function hasChanged(row: ScheduleRow): Promise<boolean> {
    const sound = (await completedOf(db, row.server_id)).filter((backup) => backup.damage === null)
    const latest = sound.find((backup) => backup.id === row.last_backup_id) ?? sound[0]
    if (!latest) return true
    const request = { serverId: row.server_id, from: latest.id, to: null, limit: 1, after: null }
    try {
      const { changes } = await agent.backups.compare(request, AbortSignal.any([]))
      return changes.length > 0
    } catch (error) {
      // A last backup that cannot be read is a reason to make one, not to make none.
      if (!isFailure(error)) throw error
      return true
    }
  }

  /** Of the newest backup that is whole; null where it has passed one already, and is not to be rehearsed again. */
  async function rehearse(trx: Trx, actor: Actor, row: ScheduleRow): Promise<string | null> {
    const newest = (await completedOf(trx, row.server_id)).find((backup) => backup.damage === null)
    if (!newest) throw fail('not_found', 'The server has no backup to rehearse.')
    if (row.only_if_changed === 1 && isPassed(newest)) return null
    await rehearsals.enqueue(trx, actor, newest)
    return newest.id
  }

  /** The backup that it makes or rehearses; null where there is no need to. */
  async function begin(trx: Trx, actor: Actor, row: ScheduleRow, server: ServerRow): Promise<string | null> {
    if (row.action === 'rehearse') return await rehearse(trx, actor, row)
    return (await backups.start(trx, actor, server, requestFor(row, server, clock.now()), 'schedule')).id
  }

  async function runOne(row: ScheduleRow): Promise<void> {
    const now = clock.now()
    const actor: Actor = { ...SYSTEM, name: `Schedule ${row.name}`, source: 'schedule' }
    const isWanted = row.action === 'rehearse' || row.only_if_changed === 0 || (await hasChanged(row))
    const nextRunAt = nextRun(row.cron, row.time_zone, now)
    await transact(db, {}, async (trx) => {
      const server = await lockServer(trx, row.server_id)
      if (server?.status !== 'ready' || !(await store.claimRun(trx, row, nextRunAt))) return
      const backupId = isWanted ? await begin(trx, actor, row, server) : null
      const outcome =
        backupId === null ? { last_outcome: 'unchanged' } : { last_outcome: 'started', last_backup_id: backupId }
      await store.updateSchedule(trx, row.id, { last_run_at: now, ...outcome })
    }).catch((error: unknown) => couldNotStart(row, actor, error))
  }

  /** The run is not lost where it only has to wait; otherwise it is skipped, and the next one comes in its time. */
  async function couldNotStart(row: ScheduleRow, actor: Actor, error: unknown): Promise<void> {
    if (!isFailure(error)) throw error
    const now = clock.now()
    const busy = error.code === 'server_busy'
    const nextRunAt = busy ? now + BUSY_RETRY_MS : nextRun(row.cron, row.time_zone, now)
    await transact(db, {}, async (trx) => {
      const server = await lockServer(trx, row.server_id)
      if (server?.status !== 'ready' || !(await store.claimRun(trx, row, nextRunAt))) return
      await store.updateSchedule(trx, row.id, { last_run_at: now, last_outcome: error.code satisfies ErrorCode })
      if (busy) return
      const properties = { scheduleId: row.id, name: row.name, error: { code: error.code, detail: error.detail } }
      await activity.record(trx, actor, 'schedule.failed', row.server_id, properties)
    })
  }

  return {
    async list(actor, serverId, query) {
      await requireServer(db, actor, serverId)
      const all = (await store.schedulesOf(db, serverId)).map(present)
      return pageOfWhole(cursors, `schedules ${serverId}`, query, all, ({ id }) => id)
    },

    async read(actor, serverId, scheduleId) {
      await requireServer(db, actor, serverId)
      return present(await requireSchedule(db, serverId, scheduleId))
    },

    create: (actor, serverId, request) =>
      unique(
        transact(db, actor, async (trx) => {
          await lockReadyServer(trx, actor, serverId)
          if ((await store.schedulesOf(trx, serverId)).length >= SCHEDULES_MAX)
            throw fail('already_exists', `The server has reached its limit of ${SCHEDULES_MAX} schedules.`)
          const row = newRow(serverId, request, clock.now())
          await store.insertSchedule(trx, row)
          await activity.record(trx, actor, 'schedule.created', serverId, activityProperties(row))
          return present(row)
        }),
      ),

    change: (actor, serverId, scheduleId, change) =>
      unique(
        transact(db, actor, async (trx) => {
          await lockReadyServer(trx, actor, serverId)
          const before = await requireSchedule(trx, serverId, scheduleId)
          const after = changedRow(before, change, clock.now())
          await store.updateSchedule(trx, scheduleId, after)
          await activity.record(trx, actor, 'schedule.changed', serverId, {
            from: activityProperties(before),
            to: activityProperties(after),
          })
          return present(after)
        }),
      ),

    remove: (actor, serverId, scheduleId) =>
      transact(db, actor, async (trx) => {
        await lockReadyServer(trx, actor, serverId)
        const row = await requireSchedule(trx, serverId, scheduleId)
        await store.removeSchedule(trx, scheduleId)
        await activity.record(trx, actor, 'schedule.deleted', serverId, { scheduleId, name: row.name })
        return undefined
      }),

    async tick() {
      const due = await store.dueSchedules(db, clock.now())
      await Promise.all(
        due.map((row) =>
          runOne(row).catch((error: unknown) =>
            log.error({ err: error, scheduleId: row.id }, 'a schedule did not run'),
          ),
        ),
      )
    },
  }
}

const isPassed = ({ rehearsal }: BackupRow) =>
  rehearsal !== null && (JSON.parse(rehearsal) as Rehearsal).outcome === 'passed'

const requestFor = (row: ScheduleRow, server: ServerRow, now: number) => ({
  name: nameFor(row.name_pattern, now, row.time_zone, server.name),
  ignored: row.ignored,
  isLocked: row.locked === 1,
})

async function unique<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (isUniqueViolation(error)) throw fail('already_exists', 'The server has a schedule of this name.', error)
    throw error
  }
}

function newRow(serverId: string, request: NewSchedule, now: number): ScheduleRow {
  const blank: ScheduleRow = {
    id: newId('sch', now),
    server_id: serverId,
    name: request.name,
    cron: request.cron,
    time_zone: 'UTC',
    name_pattern: '{date} {time}',
    ignored: '',
    locked: 0,
    only_if_changed: 0,
    enabled: 1,
    next_run_at: null,
    last_run_at: null,
    last_outcome: null,
    last_backup_id: null,
    action: 'backup',
    created_at: now,
    updated_at: now,
  }
  return changedRow(
    { ...blank, name_pattern: `${request.name.replace(/[{}]/g, '').slice(0, 100)} {date} {time}` },
    request,
    now,
  )
}

function changedRow(row: ScheduleRow, change: ScheduleChange, now: number): ScheduleRow {
  const flag = (value: boolean | undefined, old: number) => (value === undefined ? old : Number(value))
  const after = {
    ...row,
    name: change.name ?? row.name,
    action: change.action ?? row.action,
    cron: change.cron ?? row.cron,
    time_zone: change.timeZone ?? row.time_zone,
    name_pattern: change.namePattern ?? row.name_pattern,
    ignored: change.ignored ?? row.ignored,
    locked: flag(change.isLocked, row.locked),
    only_if_changed: flag(change.onlyIfChanged, row.only_if_changed),
    enabled: flag(change.isEnabled, row.enabled),
    updated_at: now,
  }
  requireShort(after.ignored)
  checkSchedule({ cron: after.cron, timeZone: after.time_zone, namePattern: after.name_pattern })
  return { ...after, next_run_at: after.enabled === 1 ? nextRun(after.cron, after.time_zone, now) : null }
}

const activityProperties = ({ id, name, action, cron, time_zone, enabled }: ScheduleRow) => ({
  scheduleId: id,
  name,
  action,
  cron,
  timeZone: time_zone,
  isEnabled: enabled === 1,
})

const time = (at: number | null) => (at === null ? null : new Date(at).toISOString())

function present(row: ScheduleRow): Schedule {
  return {
    id: row.id,
    serverId: row.server_id,
    name: row.name,
    action: row.action,
    cron: row.cron,
    timeZone: row.time_zone,
    namePattern: row.name_pattern,
    ignored: row.ignored,
    isLocked: row.locked === 1,
    onlyIfChanged: row.only_if_changed === 1,
    isEnabled: row.enabled === 1,
    nextRunAt: time(row.next_run_at),
    lastRunAt: time(row.last_run_at),
    lastOutcome: row.last_outcome,
    lastBackupId: row.last_backup_id,
    createdAt: new Date(row.created_at).toISOString(),
    updatedAt: new Date(row.updated_at).toISOString(),
  }
}

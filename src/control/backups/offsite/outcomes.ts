// What a run has come to, written down for each backup that it concerns.
import type { MirrorReport } from '../../../contract/agent/agent-offsite.ts'
import type { WorkError } from '../../../contract/jobs.ts'
import type { Activity } from '../../activity/service.ts'
import { lockServer } from '../../db/lock-server.ts'
import type { Changes } from '../../db/row-changes.ts'
import type { Db, Trx } from '../../db/tables.ts'
import { transact } from '../../db/transact.ts'
import { SYSTEM } from '../../http/actor.ts'
import * as store from './offsite-store.ts'

const BATCH = 500
const BLOBS_TOLD = 20
const LACKING: WorkError = {
  code: 'backup_damaged',
  detail:
    'Packs that this backup needs are lost or damaged on the disk and not in the off-site store, so it is not complete there. ' +
    'A verification says which files it has lost.',
}

export interface Outcomes {
  noteReport(report: MirrorReport): Promise<void>
  noteFailure(error: WorkError): Promise<void>
}

export function createOutcomes(deps: {
  db: Db
  activity: Activity
  changes: Changes
  clock: { now(): number }
}): Outcomes {
  const { db, activity, changes, clock } = deps

  /** Server by server, as they were in the database a moment ago: each is looked at again once its server is locked. */
  async function forEachServer(
    states: readonly ('pending' | 'stored' | 'failed')[],
    isMeant: (row: store.OffsiteRow) => boolean,
    work: (trx: Trx, serverId: string, rows: store.OffsiteRow[]) => Promise<void>,
  ): Promise<void> {
    let after = ''
    for (;;) {
      const rows = await store.listByState(db, states, after, BATCH)
      for (const [serverId, ofServer] of Map.groupBy(rows.filter(isMeant), (row) => row.server_id)) {
        await transact(db, {}, async (trx) => {
          if (await lockServer(trx, serverId)) await work(trx, serverId, ofServer)
        })
      }
      const last = rows.at(-1)
      if (!last || rows.length < BATCH) return
      after = last.id
    }
  }

  async function setPending(trx: Trx, rows: store.OffsiteRow[]): Promise<void> {
    const change = { offsite_state: 'pending', offsite_stored_at: null, offsite_error: null } as const
    for (const { id } of await store.setState(trx, rows, change)) changes.tellAfter(trx, id)
  }

  /** One entry for a server until everything of it is there again, however often it fails. */
  function setFailed(
    states: readonly ('pending' | 'stored')[],
    isMeant: (row: store.OffsiteRow) => boolean,
    error: WorkError,
  ): Promise<void> {
    return forEachServer(states, isMeant, async (trx, serverId, rows) => {
      const isNews = !(await store.hasFailed(trx, serverId))
      const change = {
        offsite_state: 'failed',
        offsite_stored_at: null,
        offsite_error: JSON.stringify(error),
      } as const
      const failed = await store.setState(trx, rows, change)
      for (const { id } of failed) changes.tellAfter(trx, id)
      if (isNews && failed.length > 0)
        await activity.record(trx, SYSTEM, 'backup.offsite_failed', serverId, { count: failed.length, error })
    })
  }

  async function noteHeld(surplus: MirrorReport['surplus']): Promise<void> {
    const isHeld = surplus !== null && surplus.reason !== 'append_only'
    await transact(db, {}, async (trx) => {
      if (await store.setHeld(trx, isHeld))
        await activity.record(trx, SYSTEM, 'offsite.removal_held', null, { ...surplus })
    })
  }

  async function noteRepaired(blobs: readonly string[]): Promise<void> {
    if (blobs.length === 0) return
    const properties = { count: blobs.length, blobs: blobs.slice(0, BLOBS_TOLD) }
    await transact(db, {}, (trx) => activity.record(trx, SYSTEM, 'offsite.repaired', null, properties))
  }

  return {
    async noteReport({ stored, lacking, isThorough, surplus, repaired }) {
      const ids = new Set(stored.map(({ backupId }) => backupId))
      const lackingIds = new Set(lacking.map(({ backupId }) => backupId))
      await forEachServer(
        ['pending', 'failed'],
        ({ id }) => ids.has(id),
        async (trx, serverId, rows) => {
          const change = { offsite_state: 'stored', offsite_stored_at: clock.now(), offsite_error: null } as const
          for (const { id, name } of await store.setState(trx, rows, change)) {
            await activity.record(trx, SYSTEM, 'backup.offsite_stored', serverId, { backupId: id, name })
            changes.tellAfter(trx, id)
          }
        },
      )
      // What the mirror does not have though it was there, and what has failed and has a new chance.
      if (isThorough)
        await forEachServer(
          ['stored', 'failed'],
          ({ id }) => !ids.has(id) && !lackingIds.has(id),
          (trx, _serverId, rows) => setPending(trx, rows),
        )
      await setFailed(['pending', 'stored'], ({ id }) => lackingIds.has(id), LACKING)
      await noteHeld(surplus)
      await noteRepaired(repaired)
    },

    noteFailure: (error) => setFailed(['pending'], () => true, error),
  }
}

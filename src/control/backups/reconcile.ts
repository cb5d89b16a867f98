// The database and the store cannot disagree for long: what only one of them knows is reconciled at the start, once a
// day, and on request when the database is gone.
import type { Logger } from 'pino'
import type { Recovery } from '../../contract/backups/backups.ts'
import { isFailure } from '../../contract/errors.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Db } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import { type Actor, SYSTEM } from '../http/actor.ts'
import type { Recovering } from './recovering.ts'
import type { Removal } from './removal.ts'
import type { RestoreFinishing } from './restores/restore-finish.ts'
import * as store from './store.ts'

export interface Reconciling {
  /** Compares both and puts right what it can. Servers that are unknown stay so. */
  reconcile(): Promise<void>
  /** Fails what is said to be under way and is not. */
  failStranded(): Promise<void>
  /** The same as `reconcile`, and makes servers again that only the store knows. */
  recover(actor: Actor): Promise<Recovery>
}

export function createReconciling(deps: {
  db: Db
  activity: Activity
  removal: Removal
  finishing: Pick<RestoreFinishing, 'reconcile'>
  recovering: Recovering
  log: Logger
}): Reconciling {
  const { db, activity, removal, finishing, recovering, log } = deps

  return {
    async reconcile() {
      try {
        const { adopted, missing, damaged } = await recovering.compare(SYSTEM)
        if (adopted.length + missing.length + damaged.length > 0)
          log.warn({ adopted, missing, damaged }, 'the list of backups was put right')
        await finishing.reconcile()
      } catch (error) {
        // A machine that cannot be reached is compared another time; it must not keep the service from starting.
        if (!isFailure(error, 'agent_unreachable')) throw error
      }
    },

    async failStranded() {
      for (const row of await store.stranded(db)) {
        await transact(db, {}, async (trx) => {
          await lockServer(trx, row.server_id)
          const error = { code: 'internal', detail: 'It was interrupted, and nothing is left to go on with.' }
          await store.updateBackup(trx, row.id, { status: 'failed', error: JSON.stringify(error) })
          if (row.deleted_at !== null) return removal.finish(trx, row)
          const properties = { backupId: row.id, name: row.name, error }
          await activity.record(trx, SYSTEM, 'backup.failed', row.server_id, properties)
          onCommit(trx, () => log.error({ backupId: row.id, serverId: row.server_id, error }, 'a backup failed'))
        })
      }
    },

    recover: recovering.recover,
  }
}

// The list of backups rebuilt from the store, for whoever is at the machine itself: what that needs of control, and no more.
// The whole of it takes longer to be read from disk than to rebuild the list.
import type { Logger } from 'pino'
import type { Recovery } from '../contract/backups/backups.ts'
import { createKeyedMutex } from '../kit/waiting/mutex.ts'
import { createActivity } from './activity/service.ts'
import { createDamageNotes } from './backups/damage-notes.ts'
import { firstOffsiteState } from './backups/present.ts'
import { createRecovering, type RecoveringDeps } from './backups/recovering.ts'
import { createChanges } from './db/row-changes.ts'
import type { Db } from './db/tables.ts'
import { SYSTEM } from './http/actor.ts'
import { createCursors } from './http/paging.ts'
import { keyFor } from './secrets.ts'
import { createAdoption } from './servers/adoption.ts'

/** Nobody else may be using the database: nothing of the service has been started. */
export function recoverBackups(deps: {
  db: Db
  agent: RecoveringDeps['agent'] & Parameters<typeof createAdoption>[0]['agent']
  secret: Buffer
  clock: { now(): number }
  log: Logger
  isMirrored: boolean
}): Promise<Recovery> {
  const { db, agent, secret, clock, log, isMirrored } = deps
  const cursors = createCursors(keyFor(secret, 'cursors'))
  const activity = createActivity({ db, key: keyFor(secret, 'activity'), cursors, changes: createChanges(), clock })
  const { recover } = createRecovering({
    db,
    agent,
    activity,
    servers: { adopt: createAdoption({ db, agent, activity, clock }) },
    noteDamage: createDamageNotes({ activity, onDamage: () => {} }),
    locks: { inTurn: createKeyedMutex() },
    offsite: { firstState: firstOffsiteState(isMirrored) },
    log,
  })
  return recover(SYSTEM)
}

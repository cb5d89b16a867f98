// Locks are decided by the database and kept in the store too, so that retention after a recovery spares what was locked.
import type { Logger } from 'pino'
import type { Agent } from '../../contract/agent.ts'
import { createKeyedMutex, type KeyedMutex } from '../../kit/waiting/mutex.ts'
import type { OffsiteService } from './offsite/service.ts'

export interface LockKeeper {
  /** Tells the store. Should it not hear, it is told when the two are next compared; until then the lock counts. */
  keep(serverId: string, backupId: string, isLocked: boolean): Promise<void>
  /** Whoever tells both, or compares them, does so in the turn of the backup: nobody sees one that is ahead of the other. */
  inTurn: KeyedMutex
}

export function createLockKeeper({
  agent,
  offsite,
  log,
}: {
  agent: Pick<Agent, 'backups'>
  offsite: Pick<OffsiteService, 'wake'>
  log: Logger
}): LockKeeper {
  return {
    inTurn: createKeyedMutex(),
    async keep(serverId, backupId, isLocked) {
      try {
        await agent.backups.setLock({ serverId, backupId, isLocked })
        offsite.wake()
      } catch (error) {
        // A full disk must not keep anyone from unlocking what they would delete to make room.
        log.warn({ err: error, serverId, backupId }, 'the lock of a backup could not be kept in the store')
      }
    },
  }
}

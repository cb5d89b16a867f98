// What was healed of the backups, told in the log and, where somebody's work has met the damage, to their server.
import type { Logger } from 'pino'
import type { Healed } from './backups/store/repository.ts'
import type { Journal } from './journal/journal.ts'

export function createHealedRecorder({ journal, log }: { journal: Pick<Journal, 'add'>; log: Logger }) {
  return ({ blob, serverId }: Healed): void => {
    log.warn({ blob, serverId }, 'what the disk had lost of the backups was put in place again')
    if (serverId === null) return
    journal
      .add({ serverId, kind: 'backup.healed', cause: null, properties: { blob } })
      .catch((error) => log.error({ err: error, serverId }, 'a record of the journal could not be written'))
  }
}

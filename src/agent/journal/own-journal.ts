// The journal of this machine, in its data directory.
import type { Logger } from 'pino'
import type { Layout } from '../layout.ts'
import { createJournal, type Journal } from './journal.ts'

export function createOwnJournal(layout: Layout, { clock, log }: { clock: { now(): number }; log: Logger }): Journal {
  return createJournal({
    folder: layout.journal,
    oldFolder: layout.facts,
    now: clock.now,
    onUnexpected: (error) => log.error({ err: error }, 'a record of the journal could not be written or read'),
  })
}

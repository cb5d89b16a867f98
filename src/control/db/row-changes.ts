// Wakes waiters when a row changes, at once: only this process changes rows. A commit whose result was lost wakes
// nobody, so waiters also poll at an interval of their choice.
import { createWatchers, type Watchers } from '../../kit/waiting/watchers.ts'
import type { Trx } from './tables.ts'
import { onCommit } from './transact.ts'

export interface Changes extends Watchers {
  /** As `tell`, once the transaction is committed; not at all if it is rolled back. */
  tellAfter(trx: Trx, id: string): void
}

export function createChanges(): Changes {
  const watchers = createWatchers()
  return { ...watchers, tellAfter: (trx, id) => onCommit(trx, () => watchers.tell(id)) }
}

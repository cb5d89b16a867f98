import { ERRORS, fail, isFailure } from '../../contract/errors.ts'
import { diskFaultOf } from '../../kit/files/disk-faults.ts'
import { hasCode } from '../../kit/files/errno.ts'
import type { Actor } from '../http/actor.ts'
import type { Db, Trx } from './tables.ts'

/** What PostgreSQL says to one of two transactions that wait for each other: nothing of it has happened. */
const CONFLICTS = ['40P01', '40001']
const ATTEMPTS = 4

const commitHooks = new WeakMap<Trx, (() => void)[]>()

/**
 * A change: everything in `work` happens or nothing does. Where the caller sent an idempotency key, the answer is kept
 * in the same transaction, so that a retry after a crash finds it. Await nothing but the database in here: on SQLite
 * every other query waits meanwhile, and on PostgreSQL it may have to be done again.
 */
export async function transact<T>(db: Db, actor: Pick<Actor, 'remember'>, work: (trx: Trx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const hooks: (() => void)[] = []
    const transaction = db.transaction().execute(async (trx) => {
      commitHooks.set(trx, hooks)
      const result = await work(trx)
      await actor.remember?.(trx, result)
      return result
    })
    let answer: T
    try {
      answer = await transaction
    } catch (error) {
      if (attempt < ATTEMPTS && hasCode(error, ...CONFLICTS)) continue
      const diskFault = isFailure(error) ? undefined : diskFaultOf(error)
      throw diskFault ? fail(diskFault, `${ERRORS[diskFault].title}, at the database.`, error) : error
    }
    for (const hook of hooks) hook()
    return answer
  }
}

/** For waking those who wait for a change: not before others can read it, and not at all if it is rolled back. */
export function onCommit(trx: Trx, hook: () => void): void {
  const hooks = commitHooks.get(trx)
  if (!hooks) throw new Error('onCommit outside of transact')
  hooks.push(hook)
}

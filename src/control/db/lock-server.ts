// The one way to decide something about a server: lock its row, then read it, then decide. Locks are taken in one order,
// so that no two transactions wait for each other: server rows by id, then templates, then jobs and backups, then chain heads.
import type { Db, ServerRow, Trx } from './tables.ts'

/**
 * Makes transactions on one server take turns until they end, on either engine, and answers the row as it is then.
 * What was read before, in this transaction or outside, may be out of date: PostgreSQL shows each statement what was
 * committed before it.
 */
export async function lockServer(trx: Trx, serverId: string): Promise<ServerRow | undefined> {
  return trx
    .updateTable('servers')
    .set((set) => ({ updated_at: set.ref('updated_at') }))
    .where('id', '=', serverId)
    .returningAll()
    .executeTakeFirst()
}

/** Several at once, in the order that keeps two such transactions from waiting for each other. */
export async function lockServers(trx: Trx, serverIds: Iterable<string>): Promise<Map<string, ServerRow>> {
  const locked = new Map<string, ServerRow>()
  for (const id of [...new Set(serverIds)].sort()) {
    const row = await lockServer(trx, id)
    if (row) locked.set(id, row)
  }
  return locked
}

/** For functions that read without locking: handing them a transaction does not compile. */
export type OutsideTransaction<D extends Db> = D & (D extends Trx ? never : unknown)

// Who may read and who may change a server. A transaction that changes anything about a server starts with
// `lockReadyServer` or `lockVisibleServer`; the read-only functions refuse to be called in one.
import { fail, serverDeleted } from '../../contract/errors.ts'
import { lockServer, type OutsideTransaction } from '../db/lock-server.ts'
import type { Db, ServerRow, Trx } from '../db/tables.ts'
import { type Actor, noSuchServer, sees } from '../http/actor.ts'
import { isActive } from './present.ts'
import * as store from './store.ts'

/** For work that nobody asked for, and that goes on whether or not the server is still there. */
export async function findServer<D extends Db>(
  db: OutsideTransaction<D>,
  serverId: string,
): Promise<ServerRow | undefined> {
  return store.findServer(db, serverId)
}

export async function requireServer<D extends Db>(
  db: OutsideTransaction<D>,
  actor: Actor,
  serverId: string,
): Promise<ServerRow> {
  return found(sees(actor, serverId) ? await store.findServer(db, serverId) : undefined)
}

/** For reading what lies on the agent's disk, which a deleted server has put aside. */
export async function requireServerFiles<D extends Db>(
  db: OutsideTransaction<D>,
  actor: Actor,
  serverId: string,
): Promise<ServerRow> {
  const row = await requireServer(db, actor, serverId)
  if (row.deleted_at !== null) throw serverDeleted()
  return row
}

/** For work on the agent that has no transaction of its own: a server that is on its way out takes no changes. */
export async function requireReadyServer<D extends Db>(
  db: OutsideTransaction<D>,
  actor: Actor,
  serverId: string,
): Promise<ServerRow> {
  return requireReady(await requireServer(db, actor, serverId))
}

/** The first statement of a transaction that is allowed on a server in any state. */
export async function lockVisibleServer(trx: Trx, actor: Actor, serverId: string): Promise<ServerRow> {
  return found(sees(actor, serverId) ? await lockServer(trx, serverId) : undefined)
}

/** The first statement of a transaction that changes something of a server. */
export async function lockReadyServer(trx: Trx, actor: Actor, serverId: string): Promise<ServerRow> {
  return requireReady(await lockVisibleServer(trx, actor, serverId))
}

/** Both at once, for work that takes from one server and changes another. */
export async function lockReadyServers<const Ids extends readonly string[]>(
  trx: Trx,
  actor: Actor,
  serverIds: Ids,
): Promise<{ [K in keyof Ids]: ServerRow }> {
  const locked = new Map<string, ServerRow>()
  for (const id of [...new Set(serverIds)].sort()) locked.set(id, await lockVisibleServer(trx, actor, id))
  return serverIds.map((id) => requireReady(found(locked.get(id)))) as { [K in keyof Ids]: ServerRow }
}

/** For what reads or changes the files as a whole: not in the middle of a restore that waits for a choice. */
export function requireFinishedRestore({ unfinished_restore }: ServerRow): void {
  if (unfinished_restore === null) return
  const { path, reason } = JSON.parse(unfinished_restore) as { path: string | null; reason: string }
  const where = path === null ? '' : ` at ${JSON.stringify(path)}`
  const choice = 'POST /servers/{serverId}/restore/finish with the direction "forward" or "back".'
  throw fail('server_busy', `A restore has stopped in the middle${where}: ${reason}. Choose how it ends: ${choice}`)
}

/** For what a game that runs must not see happen to its files. The agent looks again, when the files are held. */
export function requireStopped(row: ServerRow): void {
  if (!isActive(row)) return
  throw fail('server_running', 'The game runs. Stop it first.')
}

export function found(row: ServerRow | undefined): ServerRow {
  if (!row) throw noSuchServer()
  return row
}

/** Throws unless the server takes changes. */
export function requireReady(row: ServerRow): ServerRow {
  if (row.status === 'deleted') throw serverDeleted()
  if (row.status === 'undeleting') throw fail('server_busy', 'The server is being brought back.')
  if (row.status !== 'ready') throw fail('server_busy', 'The server is being deleted.')
  return row
}

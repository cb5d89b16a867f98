import type { Freed } from '../../contract/servers.ts'
import type { ServerRow, Trx } from '../db/tables.ts'
import type { Actor } from '../http/actor.ts'

/** What other parts have to say about, and do for, the change and the deletion of a server. */
export interface ServerPart {
  /** In the transaction that changes the server. */
  changed?(trx: Trx, actor: Actor, before: ServerRow, after: ServerRow): Promise<void>
  /** Throws if the server may not be deleted, or purged, now. The server is locked. */
  check?(trx: Trx, serverId: string, how: { isPurge: boolean }): Promise<void>
  /** What purging the server would free of this part. */
  frees?(serverId: string): Promise<Partial<Freed>>
  lockedCount?(serverId: string): Promise<number>
  /** Takes out of the world what a deleted server must not show, keeping what brings it back. Safe to repeat. */
  withdraw?(serverId: string, signal: AbortSignal): Promise<void>
  /** In the transaction that brings the server back. */
  revive?(trx: Trx, actor: Actor, serverId: string): Promise<void>
  /** Lets go of what the part keeps elsewhere. Safe to repeat; all of it is done before the row goes. */
  release?(serverId: string, signal: AbortSignal): Promise<void>
  /** Removes the part's rows, with the server's own. */
  remove?(trx: Trx, serverId: string): Promise<void>
}

// A console of a game that is reached over the loopback instead of its standard input: for games that are told more there, or
// read no standard input at all.
import type { RemoteAccess } from '../../../contract/games/launch.ts'
import type { HeardLines } from './heard-lines.ts'
import { openManagement } from './management.ts'
import { openRcon } from './rcon.ts'

export { RemoteFault } from './heard-lines.ts'

export interface RemoteConsole extends Disposable {
  /** Resolves once the game has answered. Fails with a `RemoteFault` where it refuses, breaks off, or speaks something else. */
  send(command: string): Promise<void>
  heard: Pick<HeardLines, 'forget' | 'until'>
}

const OPEN = { rcon: openRcon, management: openManagement }

/** Fails with a `RemoteFault`. The signal ends the connection, at any time. */
export const openRemoteConsole = (access: RemoteAccess, signal: AbortSignal): Promise<RemoteConsole> =>
  OPEN[access.via](access, signal)

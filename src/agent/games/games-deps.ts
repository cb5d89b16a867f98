// What the games of one machine offer to the rest of the agent, and what they need.
import type { AgentGames, GamesWork } from '../../contract/agent/agent-games.ts'
import { DEFAULT_GAME_UIDS } from '../../contract/fixed-limits.ts'
import type { FilesOfAgent } from '../files/index.ts'
import type { Journal } from '../journal/journal.ts'
import type { Layout } from '../layout.ts'
import type { TaskHandlers } from '../tasks.ts'
import type { Presence } from './players/index.ts'
import type { Timers } from './power/stop-ladder.ts'
import type { UserRange } from './process/game-users.ts'
import type { GameRuntime } from './runtime.ts'
import type { OpenDoor } from './sleep/door.ts'
import type { WorldHolds } from './world-holds.ts'

export interface GamesOptions {
  /** The users of games, where the service is root. */
  users: UserRange
  /** Whether games may run on a machine that cannot keep them away from everything else. */
  allowUnisolated: boolean
  /** Where a container engine listens; null: where they usually do. */
  containerSocket: string | null
  /** Keys of the service outside of its data directory. No game sees them. */
  keyFiles: readonly string[]
  /** Whether the supervisor of the next game is kept ready, once a game has been started: 11 MiB for a quicker start. */
  keepsSupervisorReady: boolean
}

export const DEFAULT_GAMES_OPTIONS: GamesOptions = {
  users: DEFAULT_GAME_UIDS,
  allowUnisolated: false,
  containerSocket: null,
  keyFiles: [],
  keepsSupervisorReady: false,
}

export interface GamesDeps {
  layout: Layout
  journal: Pick<Journal, 'add'>
  files: Pick<FilesOfAgent, 'handlers' | 'list' | 'remove' | 'server'>
  options: GamesOptions
  timers?: Timers
  runtime?: GameRuntime
  /** By what it is decided whether a game may sleep; by what is observed, by default. */
  occupancy?: (serverId: string) => Presence
  openDoor?: OpenDoor
  findBubblewrap?: () => Promise<string | null>
  onUnexpected(error: unknown, serverId: string): void
}

export interface GamesOfAgent extends AgentGames {
  /** Fails with `server_running` where the game runs, or is about to. Nothing starts it while the files are held. */
  requireStopped(serverId: string): void
  isRunning(serverId: string): boolean
  /** How many play, and since when nobody does, as far as is known. */
  presence(serverId: string): Presence
  /** Measures all games that run, and asks them who plays. By itself every ten seconds, once it was started. */
  sample(): Promise<void>
  /** Holds the world of a running game still, where its template says how. */
  holdWorld: WorldHolds['hold']
  /** For the task runner: the long work of `GamesWork`. */
  handlers: TaskHandlers<GamesWork['kind']>
  /** Ends the game of a server that is put aside. */
  end(serverId: string): Promise<void>
  /** Must be called when a server's folders are taken away. */
  forget(serverId: string): void
  /** Takes up the games that run, and starts those that ran before the machine went down. */
  start(): Promise<void>
  /** The games go on. */
  stop(): void
}

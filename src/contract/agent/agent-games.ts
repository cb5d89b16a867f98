// The part of the Agent port that runs games. The agent decides by itself what becomes of a game that ends: it goes on doing
// so while control is away. Launch and limits are kept with the game until the next start.
import type { ChangeOrigin } from '../agent.ts'
import type { ConsoleLine } from '../games/console.ts'
import type { Launch } from '../games/launch.ts'
import type { Players } from '../games/players.ts'
import type { Power, PowerAction, Runtime } from '../games/power.ts'
import type { SleepSetting } from '../games/sleep.ts'
import type { Stats, StatsPoint } from '../games/stats.ts'

export interface GameLimits {
  memoryBytes: number | null
  /** Of one core: 200 is two of them. */
  cpuPercent: number | null
  processes: number | null
}

export interface GameState {
  power: Power
  /** null until it has been started once. */
  runtime: Runtime | null
}

/** As last measured. Counts begin anew with each start of the game. */
export interface GameUsage {
  serverId: string
  cpuSeconds: number | null
  memoryBytes: number | null
  diskBytes: number | null
  /** null where the game shares the network of the machine. */
  networkReceivedBytes: number | null
  networkSentBytes: number | null
  players: number | null
}

export interface AgentGames {
  /**
   * Answers once the action has begun, not when it has ended. `isChange` is false where it is so already. `launch` is needed
   * for what may start the game. Must be idempotent but for `restart`.
   */
  power(request: {
    serverId: string
    action: PowerAction
    launch: Launch | null
    limits: GameLimits
    autoRestart: boolean
    /** null: the game never sleeps. */
    sleep: SleepSetting | null
    origin?: ChangeOrigin
  }): Promise<{ game: GameState; isChange: boolean }>
  /** From now on. A game that sleeps goes on sleeping until it is woken. */
  setSleep(request: { serverId: string; sleep: SleepSetting | null }): Promise<void>
  /** Never fails for a server that was never started: it is stopped. */
  read(request: { serverId: string }): Promise<GameState>
  /**
   * The servers whose state has changed since `version`, at once where there are any, else when there are or `waitMs` have
   * passed. An unknown version, such as that of an earlier process, answers every server that has a state.
   */
  changes(request: { version: string; waitMs: number }): Promise<{ version: string; serverIds: string[] }>
  /** Newest first, with numbers below `before`. `next` is the `before` of the next page. */
  readConsole(
    request: { serverId: string; before: number | null; limit: number; q: string | null },
    signal?: AbortSignal,
  ): Promise<{ lines: ConsoleLine[]; next: number | null }>
  /**
   * Oldest first, with numbers above `after`; null for the end as it is now. At once where there are any, else when there are or
   * `waitMs` have passed. `position` is the `after` of the next call.
   */
  followConsole(
    request: { serverId: string; after: number | null; waitMs: number },
    signal?: AbortSignal,
  ): Promise<{ lines: ConsoleLine[]; position: number }>
  /** The game is asked at most once in ten seconds. Never fails for one that does not answer. */
  readPlayers(request: { serverId: string }): Promise<Players>
  /** `since` in milliseconds; null for the last hour. `stepSeconds` null for the finest that is kept since then. */
  readStats(request: { serverId: string; since: number | null; stepSeconds: number | null }): Promise<Stats>
  /**
   * Oldest first, those that begin after `after`, in milliseconds; null for now. At once where there are any, else when there
   * are or `waitMs` have passed. `position` is the `after` of the next call.
   */
  followStats(
    request: { serverId: string; after: number | null; waitMs: number },
    signal?: AbortSignal,
  ): Promise<{ points: StatsPoint[]; position: number }>
  /** Of the games that run, at most `limit`; `running` is how many do. */
  readUsage(request: { limit: number }): Promise<{ games: GameUsage[]; running: number }>
  /**
   * Starts a game again that `games.pause` has stopped for this job, as it was started last. False where none is: it did not
   * run, or somebody has told it to stop since. Fails with `server_busy` while a restore has stopped in the middle. Must be
   * idempotent.
   */
  resume(request: { serverId: string; jobId: string }): Promise<boolean>
  /** Every game that is paused, with the job that it is paused for. */
  paused(): Promise<{ serverId: string; jobId: string }[]>
  /** Writes one line to the game's standard input. Fails with `server_not_running`. */
  sendCommand(request: { serverId: string; command: string; origin?: ChangeOrigin }): Promise<void>
}

/** Work for `AgentTasks`. */
export type GamesWork =
  /**
   * Stops the game by its ladder for a job, and is done once it has ended. That it is to be started again is kept on disk until
   * `resume`. Repeating it for one that is paused changes nothing.
   */
  { kind: 'games.pause'; jobId: string; origin: ChangeOrigin }

export interface GamesResults {
  /** False: it was not meant to run, and `resume` does not start it. */
  'games.pause': { wasWanted: boolean }
}

/** Work for `AgentTasks`: starts the game of a backup beside its server, and nobody notices. One at a time. */
export interface RehearsalWork {
  kind: 'backups.rehearse'
  backupId: string
  launch: Launch
  limits: GameLimits
  /** Within which the game has to be up. */
  timeoutSeconds: number
}

export interface RehearsalReport {
  /** `passed`: the game came up. */
  outcome: 'passed' | 'failed'
  /** Why it failed, or what else there is to say. */
  reason: string | null
  /** The last lines of its console, oldest first. */
  log: string[]
}

export interface RehearsalResults {
  'backups.rehearse': RehearsalReport
}

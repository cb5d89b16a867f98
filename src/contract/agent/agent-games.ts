// The part of the Agent port that runs games. The agent decides by itself what becomes of a game that ends: it goes on doing
// so while control is away. Launch and limits are kept with the game until the next start.
import type { ChangeOrigin } from '../agent.ts'
import type { ConsoleLine } from '../games/console.ts'
import type { Launch, LaunchInstallStep } from '../games/launch.ts'
import type { Power, PowerAction, Runtime } from '../games/power.ts'

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
    origin?: ChangeOrigin
  }): Promise<{ game: GameState; isChange: boolean }>
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
  /** Writes one line to the game's standard input. Fails with `server_not_running`. */
  sendCommand(request: { serverId: string; command: string; origin?: ChangeOrigin }): Promise<void>
}

/** Work for `AgentTasks`. Fails with `server_running` where the game runs; it does not start meanwhile. */
export type GamesWork = {
  kind: 'games.install'
  launch: Launch
  limits: GameLimits
  steps: readonly LaunchInstallStep[]
  /** Everything that is there goes to the trash first. */
  wipe: boolean
}

export interface GamesResults {
  'games.install': { steps: number }
}

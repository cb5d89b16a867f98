// The runtime port: what starts games and finds them again. What becomes of a game is decided elsewhere, the same for all.
import type { GameLimits } from '../../contract/agent/agent-games.ts'
import type { Launch } from '../../contract/games/launch.ts'
import type { Runtime } from '../../contract/games/power.ts'
import type { RunUsage } from './run-usage.ts'
import type { RunEnd } from './supervisor/protocol.ts'

export type { RunEnd } from './supervisor/protocol.ts'

export interface StartRequest {
  serverId: string
  /** Starting the same run twice starts one game. */
  runId: string
  launch: Launch
  limits: GameLimits
}

export type CheckRequest = Omit<StartRequest, 'runId'>

export interface GameRuntime {
  /** Fails with a code, and what to do, where it is known before that the game cannot start. Changes nothing. */
  check(request: CheckRequest): Promise<void>
  start(request: StartRequest, events: RunEvents): Promise<{ run: Run; runtime: Runtime }>
  /** A run of an earlier service: as it is, or how it ended. `lost`: nothing of it is left, nor was ever started. */
  find(request: { serverId: string; runId: string }, events: RunEvents): Promise<Run | RunEnd | 'lost'>
}

/** Never called before the run itself was handed over. */
export interface RunEvents {
  ready(): void
  /** What is waited for before it has started, for people; null once it is over. */
  step?(step: string | null): void
  /** There are new lines in the console. */
  lines(): void
  ended(end: RunEnd): void
}

export interface Run {
  readonly runId: string
  isReady(): boolean
  /** The number of the last line of the console. */
  tail(): number
  /**
   * One line on its standard input; `gone` where it has ended, `full` where it does not read. It is in the console, as a line
   * of the source `command`, before anything that the game answers.
   */
  input(line: string): Promise<'gone' | 'full' | null>
  signal(signal: NodeJS.Signals): Promise<void>
  /** Where it waits for something before the game is started, such as its image: ends it. False where it does not wait. */
  giveUpWaiting?(): boolean
  /** What it uses at this moment. Asked every ten seconds for every game: it must be cheap. */
  usage(): Promise<RunUsage>
  /** SIGKILL to everything that it has started, whatever state anything else is in. Where it fails, it can be tried again. */
  kill(): Promise<void>
  /** The game goes on; we let go of it. */
  detach(): void
}

export const hasEnded = (found: Run | RunEnd): found is RunEnd => 'wasReady' in found

// What the power of one game offers, and what it needs.
import type { AgentGames, GameState } from '../../../contract/agent/agent-games.ts'
import type { FactCause } from '../../../contract/agent.ts'
import type { Launch, Quiesce } from '../../../contract/games/launch.ts'
import type { PowerState } from '../../../contract/games/power.ts'
import type { SleepSetting } from '../../../contract/games/sleep.ts'
import type { KeyedMutex } from '../../../kit/waiting/mutex.ts'
import type { NewFact } from '../../journal/journal.ts'
import type { Presence } from '../players/index.ts'
import type { GameRuntime, Run } from '../runtime.ts'
import type { OpenDoor } from '../sleep/door.ts'
import type { DiskOfServer } from './disk-watch.ts'
import type { StartHold } from './start-hold.ts'
import type { Timers } from './stop-ladder.ts'

export type Request = Parameters<AgentGames['power']>[0]

export interface Game {
  read(): GameState
  /** Whether a process of it runs, or is about to. */
  isActive(): boolean
  /** Whether it is meant to run. */
  isWanted(): boolean
  /** The run under way. */
  current(): { run: Run; quiesce: Quiesce | null; state: PowerState } | undefined
  /** Another after each start. */
  startId(): string | null
  /** Starts it as it was started last; one that stops is started when it has. What keeps it from starting is tried again. */
  again(): Promise<void>
  power(request: Request): Promise<{ game: GameState; isChange: boolean }>
  /** Also of a game that runs. One that sleeps goes on sleeping until it is woken. */
  setSleep(sleep: SleepSetting | null): Promise<void>
  input(command: string, cause: FactCause | null): Promise<void>
  /** How it was started last; null where it never was. */
  launch(): Launch | null
  /** The run under way, where there is one. */
  run(): Run | undefined
  /** The number of the last line, where a run is under way. */
  tail(): number | undefined
  /** Goes on with what an earlier service has left. */
  recover(): Promise<void>
  /** Ends it now, for a server that is put aside. Resolves once it has ended. */
  end(): Promise<void>
  /** The game goes on; nothing more is done about it. */
  detach(): void
}

export interface GameDeps {
  serverId: string
  /** Where its record is. */
  file: string
  runtime: GameRuntime
  timers: Timers
  /** Resolves once it is durable. */
  addFact(fact: NewFact): Promise<void>
  /** Fills in the files that the launch names, and fails with a code where something is missing. */
  prepare(launch: Launch): Promise<void>
  startHold: StartHold
  /** Held while a game is being started: nothing replaces its files meanwhile. */
  shareFiles(): Disposable
  /** Lets go on what is held still. Never fails. */
  letGo(): Promise<void>
  disk: DiskOfServer
  occupancy(): Presence
  openDoor: OpenDoor
  /** Of the starts that the machine's own start brings, one at a time of each kind of runtime. */
  startTurn: KeyedMutex
  changed(): void
  lines(): void
  onUnexpected(error: unknown): void
}

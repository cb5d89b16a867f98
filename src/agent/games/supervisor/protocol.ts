// What the service and the supervisor of a game tell each other, in lines of JSON over a socket in the game's folder, and
// what the supervisor writes down there.
import type { LinePattern } from '../../../contract/games/launch.ts'
import type { ProcessIdentity } from '../process-identity.ts'

/** A control group, and the one that the supervisor itself goes back to. */
export interface GroupFolder {
  folder: string
  leaveTo: string
}

/** Of what a supervisor starts. */
export const ENVIRONMENT_FD = 3
export const INFO_FD = 4

/** On the supervisor's standard input, in a line of its own: what it does while its order is still being made. */
export interface Preparation {
  /** Control groups that it is to start the game in. */
  groups: readonly GroupFolder[]
  ownership: OwnershipQuestion | null
}

/** A program that says nothing, and ends well, where all files of the server belong to its user. */
export interface OwnershipQuestion {
  file: string
  args: readonly string[]
}

/** On the supervisor's standard input, once, after a `Preparation`. */
export interface SupervisorInput {
  /** Of the game: where its socket and its records are. */
  folder: string
  order: SupervisorOrder
}

export type SupervisorOrder = ProcessOrder | PipesOrder

interface RunOrder {
  runId: string
  consoleFolder: string
  ready: readonly LinePattern[]
  stopsByItself: readonly LinePattern[]
  /** Of a game that must not run on by itself. */
  killAfterMs?: number
}

/** A game that the supervisor starts itself. */
export interface ProcessOrder extends RunOrder {
  command: { file: string; args: readonly string[]; cwd: string }
  /** Of the game, an entry on each line. The command has none, and takes it over on its descriptor `ENVIRONMENT_FD`. */
  environment: string
  /** The user of the game alone, where ending all that it runs is what ends the game; else null. */
  user: number | null
  /** bubblewrap tells, on its descriptor `INFO_FD`, which process leads the game's group, and how it ended. */
  isBubblewrap: boolean
  /** Control groups that the game is to be in. */
  cgroups: readonly GroupFolder[]
}

/** A game that somebody else starts, with these pipes as its input and output: the service tells of its end. */
export interface PipesOrder extends RunOrder {
  pipesFolder: string
  /** Goes on for a supervisor that is gone. */
  isSuccessor: boolean
}

/** On the supervisor's descriptor 3, in a line, where it was asked. */
export interface OwnershipAnswer {
  isOwner: boolean
}

/** On the supervisor's descriptor 3, in its last line: whether the game was started. */
export type StartAnswer = { started: true } | { started: false; code: string; message: string }
/** The code of an answer: bubblewrap could not do its work. */
export const NOT_ISOLATED = 'NOT_ISOLATED'
/** The code of an answer that nobody gave: the supervisor was not started, or ended. */
export const NO_WORD = 'NO_WORD'

/** `run-<id>.json`. Whoever makes the file has the run: a supervisor that comes too late finds it taken, and starts nothing. */
export interface RunRecord {
  runId: string
  supervisor: ProcessIdentity
  /** Leads the group of the game; null until there is one. */
  game: ProcessIdentity | null
  cgroups: readonly GroupFolder[]
  /** The user of the game alone, as in its order. */
  user?: number | null
  /** Whether it has said that players can join, for a successor. */
  isReady?: boolean
}

/** `exit-<id>.json`: how the run ended. */
export interface RunEnd {
  code: number | null
  signal: NodeJS.Signals | null
  at: number
  isOutOfMemory: boolean
  /** False where it ended before a program of the game began: what is around it failed. */
  hasBegun?: boolean
  /** Whether it had said that players can join, and that it was told to stop. */
  wasReady: boolean
  saidStop: boolean
  lastLine: number | null
}

/** How a game ended, as far as whoever started it knows. */
export type GameEnd = Pick<RunEnd, 'code' | 'signal' | 'isOutOfMemory' | 'hasBegun'>

/** By a clock that all processes of the machine share, and nobody sets. */
export const uptimeMs = () => Number(process.hrtime.bigint() / 1_000_000n)

/** Input that comes after its time counts as not taken already, and may have been sent again. */
export type Request = { id: number } & (
  | { op: 'input'; text: string; notAfter?: number }
  | { op: 'signal'; signal: NodeJS.Signals }
  // Of a game with pipes: that it has started, what happens to it, who leads it, how it ended, or that there will be none.
  | { op: 'begin' }
  | { op: 'note'; text: string }
  | { op: 'leader'; game: ProcessIdentity }
  | { op: 'ended'; end: GameEnd }
  | { op: 'quit' }
)

export type Message =
  | { status: RunStatus }
  /** The number of the last line of the console. */
  | { tail: number }
  | { reply: number; error: 'gone' | 'full' | null }

export interface RunStatus {
  runId: string
  tail: number
  isReady: boolean
  end: RunEnd | null
}

export const SOCKET = 'control.sock'
export const runFile = (runId: string) => `run-${runId}.json`
export const exitFile = (runId: string) => `exit-${runId}.json`

/** Lines of JSON out of chunks of text. What is none, or too long to be one, ends the connection. */
export function createMessageReader<T>(onMessage: (message: T) => void): (chunk: string) => void {
  let text = ''
  return (chunk) => {
    text += chunk
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n')) {
      const line = text.slice(0, at)
      text = text.slice(at + 1)
      onMessage(JSON.parse(line) as T)
    }
    if (text.length > MESSAGE_MAX) throw new Error('a message is too long')
  }
}

const MESSAGE_MAX = 256 * 1024

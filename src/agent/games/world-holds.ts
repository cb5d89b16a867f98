// Holds the world of a running game still while its files are read, by the commands of its template. What lets it go on is
// sent in every case: a note on disk, made before the first command, tells the next service should this one die meanwhile.
import { randomUUID } from 'node:crypto'
import type { Quiesce } from '../../contract/games/launch.ts'
import type { PowerState } from '../../contract/games/power.ts'
import { readRecord, removeRecord, writeRecord } from '../../kit/files/durable-record.ts'
import { createKeyedMutex } from '../../kit/waiting/mutex.ts'
import type { Watchers } from '../../kit/waiting/watchers.ts'
import type { ConsoleTail } from './console/console-tail.ts'
import type { Timers } from './power/stop-ladder.ts'
import type { Run } from './runtime.ts'
import { askForStillness, ENDED_MEANWHILE, NOT_READ, notTaken, tellRemotely, WRITING } from './stillness.ts'

/** A game that did not read what lets it go on is told again after this long, until it has read it or has ended. */
const RETRY_MS = 1000
/** Over a connection it is after twice as long each time, up to this: a game writes a line for each connection. */
const REMOTE_RETRY_MAX_MS = 60_000

/** What a game did while its files were read. */
export interface HeldWorld {
  /**
   * `idle`: none ran. `still`: it said that its world was still, and was let go afterwards. `saved`: it said that it had
   * saved, and could write again. `loose`: it ran as ever.
   */
  how: 'idle' | 'still' | 'saved' | 'loose'
  /** From the game's word that the world was still until it was let go; null where it gave none. */
  heldMs: number | null
  warnings: readonly string[]
}

export interface WorldHold {
  /** Everything has been read: lets the game go on. Must be idempotent. */
  release(): Promise<HeldWorld>
}

export interface HeldGame {
  run: Pick<Run, 'runId' | 'tail' | 'input'>
  quiesce: Quiesce | null
  state: PowerState
}

export interface WorldHoldsDeps {
  /** The run under way; undefined where there is none. */
  current(serverId: string): HeldGame | undefined
  /** Whether one runs, or is about to. */
  isActive(serverId: string): boolean
  /** Another after each start. */
  startId(serverId: string): string | null
  /** Whether an installation writes its files, and how many have begun. */
  installations(serverId: string): { isUnderWay: boolean; count: number }
  noteFile(serverId: string): string
  console(serverId: string): ConsoleTail
  lines: Watchers
  timers: Timers
  onUnexpected(error: unknown, serverId: string): void
}

export interface WorldHolds {
  /** One at a time for a server. Fails only with the reason of the signal, or where the disk takes no note. */
  hold(serverId: string, signal: AbortSignal): Promise<WorldHold>
  /** Lets go whatever is held, by whichever service: before the game is stopped, and when it is found again. Never fails. */
  interrupt(serverId: string): Promise<void>
  forget(serverId: string): void
  /** Notes stay, for the next service. */
  stop(): void
}

interface Note {
  /** Of the hold. */
  id: string
  runId: string
  after: readonly string[]
}

export function createWorldHolds(deps: WorldHoldsDeps): WorldHolds {
  const { current, timers } = deps
  /** The ids of holds under way; one that is no longer here has been interrupted. */
  const holding = new Map<string, string>()
  const mutex = createKeyedMutex()
  const retries = new Map<string, { id: string; pauseMs: number; timer: Disposable }>()
  let isStopped = false

  const isRunning = (serverId: string, runId: string) => current(serverId)?.run.runId === runId

  /** Where the disk does not let it go, the game is told once more than it has to be. */
  function removeNote(serverId: string): void {
    try {
      removeRecord(deps.noteFile(serverId))
    } catch (error) {
      deps.onUnexpected(error, serverId)
    }
  }

  /** True once nothing is left to be told to anybody. With an id, a later hold is left alone. */
  const letGo = (serverId: string, { id, hasSent = true }: { id?: string; hasSent?: boolean } = {}): Promise<boolean> =>
    mutex(serverId, async () => {
      const note = readRecord<Note>(deps.noteFile(serverId))
      if (!note || (id !== undefined && note.id !== id)) return true
      const isTold = !hasSent || (await tell(serverId, note))
      // A detached game answers nothing: the next service tells it.
      if (isStopped) return false
      if (isTold) removeNote(serverId)
      else retryLater(serverId, note.id)
      return isTold
    })

  /** A run that has ended needs no telling, and one that came after it was never held. */
  async function tell(serverId: string, { runId, after }: Note): Promise<boolean> {
    const held = current(serverId)
    const remote = held?.run.runId === runId ? held.quiesce?.remote : null
    if (remote) return (await tellRemotely(remote, after)) || !isRunning(serverId, runId)
    for (const command of after) {
      const game = current(serverId)
      // One that could not be taken up yet plays on, and is told once it has been.
      if (!game && deps.isActive(serverId)) return false
      if (game?.run.runId !== runId) return true
      if ((await game.run.input(command)) !== null) return !isRunning(serverId, runId)
    }
    return true
  }

  function retryLater(serverId: string, id: string): void {
    const last = retries.get(serverId)
    last?.timer[Symbol.dispose]()
    const isAgain = last?.id === id && current(serverId)?.quiesce?.remote
    const pauseMs = isAgain ? Math.min(2 * last.pauseMs, REMOTE_RETRY_MAX_MS) : RETRY_MS
    const retry = () => void letGo(serverId, { id }).catch((error) => deps.onUnexpected(error, serverId))
    retries.set(serverId, { id, pauseMs, timer: timers.after(pauseMs, retry) })
  }

  async function hold(serverId: string, game: HeldGame, quiesce: Quiesce, signal: AbortSignal): Promise<WorldHold> {
    const id = randomUUID()
    const { runId } = game.run
    const { after } = quiesce
    if (after.length > 0) writeRecord(deps.noteFile(serverId), { id, runId, after } satisfies Note)
    holding.set(serverId, id)
    let hasSent = false
    const end = async () => {
      const isMine = holding.get(serverId) === id
      if (isMine) holding.delete(serverId)
      return { isWhole: isMine && isRunning(serverId, runId), isToldToGoOn: await letGo(serverId, { id, hasSent }) }
    }
    try {
      const place = { console: deps.console(serverId), lines: deps.lines, serverId }
      const isHeld = () => holding.get(serverId) === id && isRunning(serverId, runId)
      const sending = () => {
        hasSent = true
      }
      const refusal = await askForStillness({ ...place, run: game.run, isHeld, sending, quiesce, signal })
      if (refusal !== null) {
        const { isToldToGoOn } = await end()
        return looseHold(isToldToGoOn ? [refusal] : [refusal, NOT_TOLD])
      }
    } catch (error) {
      await end()
      throw error
    }
    const since = performance.now()
    const release = async (): Promise<HeldWorld> => {
      const heldMs = Math.round(performance.now() - since)
      const { isWhole, isToldToGoOn } = await end()
      const warnings = isToldToGoOn ? [] : [NOT_TOLD]
      if (!isWhole) return { how: 'loose', heldMs, warnings: [...warnings, ENDED_MEANWHILE] }
      return { how: after.length > 0 ? 'still' : 'saved', heldMs, warnings }
    }
    let releasing: Promise<HeldWorld> | undefined
    return { release: () => (releasing ??= release()) }
  }

  function holdIdle(serverId: string): WorldHold {
    const startId = deps.startId(serverId)
    const { isUnderWay, count } = deps.installations(serverId)
    if (isUnderWay) return looseHold([INSTALLED])
    const isIdle = () => !deps.isActive(serverId) && deps.startId(serverId) === startId
    if (!isIdle()) return looseHold([NOT_UP])
    return {
      async release() {
        if (!isIdle()) return { how: 'loose', heldMs: null, warnings: [STARTED_MEANWHILE] }
        return deps.installations(serverId).count === count ? IDLE : { ...IDLE, how: 'loose', warnings: [INSTALLED] }
      },
    }
  }

  return {
    async hold(serverId, signal) {
      const game = current(serverId)
      if (!game) return holdIdle(serverId)
      if (!game.quiesce) return looseHold([NO_COMMANDS])
      if (game.state !== 'running') return looseHold([NOT_UP])
      if (!(await letGo(serverId))) return looseHold([notLetGo(game.quiesce)])
      // It may have been told to stop meanwhile: what comes after that would keep it from saving.
      const now = current(serverId)
      if (now?.run.runId !== game.run.runId || now.state !== 'running') return looseHold([NOT_UP])
      return await hold(serverId, now, game.quiesce, signal)
    },
    async interrupt(serverId) {
      try {
        holding.delete(serverId)
        await letGo(serverId)
      } catch (error) {
        deps.onUnexpected(error, serverId)
      }
    },
    forget(serverId) {
      holding.delete(serverId)
      retries.get(serverId)?.timer[Symbol.dispose]()
      retries.delete(serverId)
    },
    stop() {
      isStopped = true
      for (const { timer } of retries.values()) timer[Symbol.dispose]()
    },
  }
}

const IDLE: HeldWorld = { how: 'idle', heldMs: null, warnings: [] }

function looseHold(warnings: string[]): WorldHold {
  return { release: async () => ({ how: 'loose', heldMs: null, warnings }) }
}

const notLetGo = ({ remote }: Quiesce) =>
  remote ? notTaken(remote.via, 'it has not answered yet to what lets it go on after an earlier backup') : NOT_READ
const NO_COMMANDS = `${WRITING}: its template has no commands that hold its world still.`
const NOT_UP = `${WRITING}: it was starting or stopping, and could not be told to hold its world still.`
const STARTED_MEANWHILE = `${WRITING}: it was started meanwhile.`
const INSTALLED = 'Files could change while they were read: the server was being installed.'
const NOT_TOLD =
  'The game has not read yet what lets it go on after the backup, so it may not save. It is told again until it has.'

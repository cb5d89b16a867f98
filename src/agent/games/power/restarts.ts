// Starts that nobody waits for: after a crash, later each time, and after the machine was down, one game at a time.
import { isFailure } from '../../../contract/errors.ts'
import { CRASH_RESTARTS } from '../../../contract/fixed-limits.ts'
import type { Runtime } from '../../../contract/games/power.ts'
import { iso } from '../../../kit/time.ts'
import type { KeyedMutex, Mutex } from '../../../kit/waiting/mutex.ts'
import { restartDelayMs } from './exits.ts'
import type { GameRecord } from './game-record.ts'
import type { KnownGame } from './game-state.ts'
import type { Timers } from './stop-ladder.ts'

export interface RestartDeps {
  game: KnownGame
  timers: Timers
  /** Of the game: one action at a time. */
  mutex: Mutex
  /** Of the starts that the machine's own start brings, one at a time of each kind of runtime. */
  startTurn: KeyedMutex
  isDetached(): boolean
  start(): Promise<void>
  background(work: Promise<unknown>): void
  onUnexpected(error: unknown): void
}

export interface Restarts {
  cancel(): void
  /** The game has crashed: starts it again after a while, unless it is given up. */
  crash(change: Partial<GameRecord> & { restarts: number }): void
  schedule(at: number): void
  /** What keeps it from starting may pass, such as a port that is still held. */
  startAgain(): Promise<void>
  /** Nobody waits for it: a machine with many games answers before the last of them is up. */
  startSoon(): void
}

export function createRestarts(deps: RestartDeps): Restarts {
  const { game, timers, mutex } = deps
  let timer: Disposable | undefined

  const isStillWanted = () => game.record().isWanted && game.record().runId === null && !deps.isDetached()

  function cancel(): void {
    timer?.[Symbol.dispose]()
    timer = undefined
  }

  function crash(change: Partial<GameRecord> & { restarts: number }): void {
    const delayMs = game.record().autoRestart ? restartDelayMs(change.restarts) : undefined
    if (delayMs === undefined) {
      game.enter('crashed', { ...change, isWanted: false, restartAt: null })
      return
    }
    const restartAt = timers.now() + delayMs
    const step = `starting again at ${iso(restartAt)}`
    game.enter('crashed', { ...change, isWanted: true, restarts: change.restarts + 1, restartAt }, step)
    schedule(restartAt)
  }

  function schedule(at: number): void {
    cancel()
    timer = timers.after(Math.max(0, at - timers.now()), () =>
      deps.background(
        mutex(async () => {
          if (isStillWanted()) await startAgain()
        }),
      ),
    )
  }

  async function startAgain(): Promise<void> {
    const { restarts } = game.record()
    try {
      await deps.start()
    } catch (error) {
      if (isFailure(error, 'server_busy')) return waitFor(restarts)
      deps.onUnexpected(error)
      crash({ restarts })
    }
  }

  /** Its files are somebody else's for a while, such as a restore's: that is no crash, and is not counted as one. */
  function waitFor(restarts: number): void {
    const restartAt = timers.now() + (restartDelayMs(Math.max(0, restarts - 1)) ?? CRASH_RESTARTS.longestMs)
    const state = game.record().power.state === 'crashed' ? 'crashed' : 'starting'
    game.enter(state, { isWanted: true, restartAt }, 'waiting for the files of the server, which are in use')
    schedule(restartAt)
  }

  function startSoon(): void {
    game.enter('starting')
    // An engine that hangs keeps only its own waiting.
    const kind: Runtime['kind'] = game.record().launch?.container ? 'container' : 'process'
    deps.background(deps.startTurn(kind, () => mutex(async () => (isStillWanted() ? startAgain() : undefined))))
  }

  return { cancel, crash, schedule, startAgain, startSoon }
}

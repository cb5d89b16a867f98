// Goes on with what an earlier service has left. A run that may still be under way is looked for until it is known what became
// of it: as long as it is not, the game counts as running, and whoever wants something of it is told why that cannot be.
import { fail } from '../../../contract/errors.ts'
import type { Mutex } from '../../../kit/waiting/mutex.ts'
import { bootId } from '../process-identity.ts'
import { type GameRuntime, hasEnded, type Run, type RunEnd, type RunEvents } from '../runtime.ts'
import { stateAfter } from './exits.ts'
import type { KnownGame } from './game-state.ts'
import type { Restarts } from './restarts.ts'
import type { Timers } from './stop-ladder.ts'

const FIRST_RETRY_MS = 1000
const LONGEST_RETRY_MS = 60_000
const OUT_OF_REACH = 'it cannot be reached, which is tried again'

export interface TakeUpDeps {
  serverId: string
  game: KnownGame
  runtime: Pick<GameRuntime, 'find'>
  restarts: Restarts
  timers: Timers
  /** Of the game: one action at a time. */
  mutex: Mutex
  eventsOf(runId: string): RunEvents
  /** Whether a run of it is in hand, or is being started. */
  isInHand(): boolean
  isDetached(): boolean
  /** It runs. */
  adopt(run: Run): Promise<void>
  /** Nothing of it does. */
  ended(end: RunEnd, at: number): Promise<void>
  lost(): void
  /** Lets go on what is held still. Never fails. */
  letGo(): Promise<void>
  background(work: Promise<unknown>): void
  onUnexpected(error: unknown): void
}

export interface TakeUp {
  /** Whether there is a run of which nothing is known yet. */
  isDue(): boolean
  /** Must be called in the turn of the game. Fails with `server_busy` where it is not known what became of a run. */
  require(): Promise<void>
  /** Once, at the start of the service, in the turn of the game. What fails is tried again. */
  recover(): Promise<void>
  cancel(): void
}

export function createTakeUp(deps: TakeUpDeps): TakeUp {
  const { serverId, game, restarts, timers, mutex } = deps
  const { record, save, enter } = game
  let timer: Disposable | undefined
  const isDue = () => record().runId !== null && !deps.isInHand()

  function cancel(): void {
    timer?.[Symbol.dispose]()
    timer = undefined
  }

  async function takeUp(): Promise<void> {
    const { runId } = record()
    if (runId === null) return
    const found = await deps.runtime.find({ serverId, runId }, deps.eventsOf(runId))
    cancel()
    if (record().power.step?.startsWith(OUT_OF_REACH)) game.tell(null)
    const isOfThisBoot = record().bootId === bootId()
    if (found === 'lost' || (hasEnded(found) && !isOfThisBoot && record().isWanted)) {
      const { asked } = record()
      save({ runId: null, asked: null })
      deps.lost()
      return record().isWanted ? restarts.startSoon() : enter(stateAfter(asked))
    }
    return hasEnded(found) ? deps.ended(found, found.at) : deps.adopt(found)
  }

  async function takeUpOrRetry(retryMs: number): Promise<void> {
    try {
      await takeUp()
    } catch (error) {
      deps.onUnexpected(error)
      game.tell(`${OUT_OF_REACH}: ${messageOf(error)}`)
      timer = timers.after(retryMs, () => deps.background(mutex(() => retry(Math.min(2 * retryMs, LONGEST_RETRY_MS)))))
    }
  }

  async function retry(nextMs: number): Promise<void> {
    if (!isDue() || deps.isDetached()) return
    await takeUpOrRetry(nextMs)
    if (!isDue()) await deps.letGo()
  }

  return {
    isDue,
    cancel,
    async require() {
      if (!isDue()) return
      try {
        await takeUp()
      } catch (error) {
        throw fail(
          'server_busy',
          `It is not known whether the game runs: ${messageOf(error)} It is tried again.`,
          error,
        )
      }
    },
    async recover() {
      const { runId, isWanted, restartAt, power } = record()
      if (runId !== null) return takeUpOrRetry(FIRST_RETRY_MS)
      if (!isWanted) {
        // A start that failed or was ended, when the service died before it had recorded what came of it.
        if (power.state === 'starting' || power.state === 'stopping') enter('stopped', { asked: null })
        return
      }
      // Also one that was to be started after its stop, or was waiting for its turn, when the service died.
      const isWaiting = power.state === 'crashed' && restartAt !== null && record().bootId === bootId()
      return isWaiting ? restarts.schedule(restartAt) : restarts.startSoon()
    },
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

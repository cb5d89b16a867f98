// The end of a run, once it is wanted: by the ladder of its template, or by SIGKILL, which is sent until it was taken.
import type { StopStep } from '../../../contract/games/launch.ts'
import type { Run } from '../runtime.ts'
import type { KnownGame } from './game-state.ts'
import { descend, killUntilTaken, type Timers } from './stop-ladder.ts'

export interface Stopping {
  /** Nobody waits for it. */
  descend(run: Run, steps: readonly StopStep[]): void
  /** Takes the place of a ladder. Resolves after the first try, also where that failed: it is tried again. Never fails. */
  kill(run: Run): Promise<void>
  /** The run has ended, or we let go of it. */
  cancel(): void
}

export function createStopping(deps: {
  game: Pick<KnownGame, 'tell'>
  timers: Timers
  /** Lets go on what is held still. Never fails. */
  letGo(): Promise<void>
  background(work: Promise<unknown>): void
  onUnexpected(error: unknown): void
}): Stopping {
  const { game, timers, onUnexpected } = deps
  let current: AbortController | undefined

  function begin(run: Run) {
    current?.abort()
    const mine = new AbortController()
    current = mine
    const { signal } = mine
    const tell = (step: string) => {
      if (!signal.aborted) game.tell(step)
    }
    return { run, timers, signal, onUnexpected, tell }
  }

  return {
    descend(run, steps) {
      const ladder = begin(run)
      // First: a world that is held still would not be saved.
      deps.background(deps.letGo().then(() => descend({ ...ladder, steps })))
    },
    async kill(run) {
      const first = Promise.withResolvers<void>()
      deps.background(killUntilTaken(begin(run), first.resolve))
      await first.promise
    },
    cancel: () => current?.abort(),
  }
}

// The turns of the event loop, shared among everything that goes through a tenant's data on the main thread. All of it
// together has a millisecond or two of each turn, however many of them there are, and those that wait for the next one are
// served in turn by server: a hundred walks of one server take no more from the others than one does. They give way to what
// is urgent, and what is small does not wait for them.
import { giveWay } from './urgent.ts'

/** A request takes several turns, in each of which this may be used up. */
const TURN_MS = 1
/** What each may do first, whoever has used up the turn: a request that looks at a few entries waits for no one's walk. */
const FIRST_MS = 0.25

/** When the first walk of this turn began; undefined while there was none. */
let turnBegan: number | undefined
let isTurnAwaited = false
/** Who waits, by share; the next turn belongs to the first share, which is then the last. */
const waiting = new Map<string, (() => void)[]>()

function awaitTurn(): void {
  if (isTurnAwaited) return
  isTurnAwaited = true
  giveWay(beginTurn)
}

function beginTurn(): void {
  isTurnAwaited = false
  turnBegan = undefined
  const [next] = waiting
  if (!next) return
  const [share, queue] = next
  const go = queue.shift()
  waiting.delete(share)
  if (queue.length > 0) waiting.set(share, queue)
  if (waiting.size > 0) awaitTurn()
  go?.()
}

export interface Turns {
  /** Asked at every entry; true when the time of this turn is used up. */
  due(): boolean
  /** Resolves in a later turn; fails once the signal has fired. */
  take(): Promise<void>
}

/** Of one walk. `share`: whose work it is, for a server its id, whatever of it is gone through. */
export function createTurns(share: string, signal?: AbortSignal): Turns {
  const firstUntil = performance.now() + FIRST_MS
  return {
    due() {
      const now = performance.now()
      if (turnBegan !== undefined) return now >= firstUntil && now - turnBegan > TURN_MS
      turnBegan = now
      awaitTurn()
      return false
    },
    async take() {
      await new Promise<void>((resolve) => {
        const queue = waiting.get(share)
        if (queue) queue.push(resolve)
        else waiting.set(share, [resolve])
        awaitTurn()
      })
      signal?.throwIfAborted()
    },
  }
}

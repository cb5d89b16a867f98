// A rate limiter that delays: work that comes too soon waits, and is refused if the wait would be too long.
import { setTimeout as delay } from 'node:timers/promises'
import { fail } from '../contract/errors.ts'
import { createPace, type PaceOptions } from '../kit/waiting/pace.ts'

export interface Paced {
  /** Resolves when it is the turn of these units; undefined where that is at once. Throws `rate_limited`. */
  turnOf(key: string, units: number, signal?: AbortSignal): Promise<void> | undefined
  /** Of the units that it was the turn of. */
  giveBack(key: string, units: number): void
}

export function createPaced(options: PaceOptions, detail: string): Paced {
  const pace = createPace(options)
  return {
    turnOf(key, units, signal) {
      const { waitMs, isTaken } = pace.take(key, units)
      if (!isTaken) throw fail('rate_limited', { detail, headers: { 'retry-after': String(Math.ceil(waitMs / 1000)) } })
      return waitMs > 0 ? wait(waitMs, signal) : undefined
    },
    giveBack: pace.giveBack,
  }
}

async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  // What the delay fails with hides why the signal fired.
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => signal?.throwIfAborted())
}

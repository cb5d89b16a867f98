// Large JSON bodies, each in its time. Reading one is work of the thread that answers everybody, some milliseconds that
// cannot be divided, and the limit on requests would allow a token a hundred of them a second.
import { setTimeout as delay } from 'node:timers/promises'
import { fail } from '../../contract/errors.ts'
import { LARGE_BODIES } from '../../contract/limits.ts'
import { createPace } from '../../kit/pace.ts'

export interface BodyPace {
  /** Resolves when a body of this token may be read; undefined for one that may be at once. */
  turnOf(tokenId: string, bytes: number): Promise<void> | undefined
}

export function createBodyPace(isLimited: boolean, now?: () => number): BodyPace {
  const { bytesPerSecond, waitMs: longestMs } = LARGE_BODIES
  const pace = createPace({ unitsPerSecond: bytesPerSecond, waitMs: longestMs, ...(now ? { now } : {}) })
  return {
    turnOf(tokenId, bytes) {
      if (!isLimited || bytes <= LARGE_BODIES.bytes) return undefined
      const { waitMs, isTaken } = pace.take(tokenId, bytes)
      if (!isTaken)
        throw fail('rate_limited', {
          detail: 'Too many large bodies were sent with this token.',
          headers: { 'retry-after': String(Math.ceil(waitMs / 1000)) },
        })
      return waitMs > 0 ? delay(waitMs) : undefined
    },
  }
}

// Large JSON bodies, each in its time. Reading one is work of the thread that answers everybody, some milliseconds that
// cannot be divided, and the limit on requests would allow a token a hundred of them a second.
import { setTimeout as delay } from 'node:timers/promises'
import { fail } from '../../contract/errors.ts'
import { LARGE_BODIES } from '../../contract/limits.ts'

const SWEEP_AT = 1000

export interface BodyPace {
  /** Resolves when a body of this token may be read; undefined for one that may be at once. */
  turnOf(tokenId: string, bytes: number): Promise<void> | undefined
}

export function createBodyPace(isLimited: boolean, now = () => performance.now()): BodyPace {
  /** When the next large body of a token may be read. */
  const freeAt = new Map<string, number>()

  function sweep(at: number): void {
    if (freeAt.size < SWEEP_AT) return
    for (const [tokenId, time] of freeAt) if (time <= at) freeAt.delete(tokenId)
  }

  return {
    turnOf(tokenId, bytes) {
      if (!isLimited || bytes <= LARGE_BODIES.bytes) return undefined
      const at = now()
      const begin = Math.max(at, freeAt.get(tokenId) ?? at)
      const waitMs = begin - at
      if (waitMs > LARGE_BODIES.waitMs)
        throw fail('rate_limited', {
          detail: 'Too many large bodies were sent with this token.',
          headers: { 'retry-after': String(Math.ceil(waitMs / 1000)) },
        })
      sweep(at)
      freeAt.set(tokenId, begin + (1000 * bytes) / LARGE_BODIES.bytesPerSecond)
      return waitMs > 0 ? delay(waitMs) : undefined
    },
  }
}

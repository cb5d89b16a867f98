// Large JSON bodies, each in its time. Reading one is work of the thread that answers everybody, some milliseconds that
// cannot be divided, and the limit on requests would allow a token a hundred of them a second.
import { LARGE_BODIES } from '../../contract/limits.ts'
import { createPaced } from '../../http/paced.ts'

export interface BodyPace {
  /** Resolves when a body of this token may be read; undefined for one that may be at once. */
  turnOf(tokenId: string, bytes: number): Promise<void> | undefined
}

export function createBodyPace(isLimited: boolean, now?: () => number): BodyPace {
  const { bytesPerSecond, waitMs } = LARGE_BODIES
  const paced = createPaced(
    { unitsPerSecond: bytesPerSecond, waitMs, ...(now ? { now } : {}) },
    'Too many large bodies were sent with this token.',
  )
  return {
    turnOf: (tokenId, bytes) => (isLimited && bytes > LARGE_BODIES.bytes ? paced(tokenId, bytes) : undefined),
  }
}

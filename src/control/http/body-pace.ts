// Paces large JSON bodies. Parsing one blocks the main thread for some milliseconds that cannot be divided, and the
// limit on requests alone would allow a token a hundred of them a second.
import { LARGE_BODIES } from '../../contract/fixed-limits.ts'
import { createPaced } from '../../http/paced.ts'

export interface BodyPace {
  /** Resolves when a body of this token may be read; undefined for one that may be at once. */
  turnOf(tokenId: string, bytes: number, signal?: AbortSignal): Promise<void> | undefined
  /** Of what it was the turn of: fewer bytes have arrived than were counted. */
  giveBack(tokenId: string, bytes: number): void
}

export function createBodyPace(isLimited: boolean, now?: () => number): BodyPace {
  const { bytesPerSecond, waitMs } = LARGE_BODIES
  const paced = createPaced(
    { unitsPerSecond: bytesPerSecond, waitMs, ...(now ? { now } : {}) },
    'Too many large bodies were sent with this token.',
  )
  return {
    turnOf: (tokenId, bytes, signal) =>
      isLimited && bytes > LARGE_BODIES.bytes ? paced.turnOf(tokenId, bytes, signal) : undefined,
    giveBack: paced.giveBack,
  }
}

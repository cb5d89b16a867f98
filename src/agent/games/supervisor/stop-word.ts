// Whether a game said, right before it ended, that it was told to stop from inside. What it said long before does not count:
// somebody may have said it in the chat, and a crash hours later is a crash.
import type { LineMatcher } from '../console/line-pattern.ts'

/** What a game may still say after it, and for how long, while it saves. */
const LAST_LINES = 200
const LAST_MS = 120_000

export interface StopWord {
  hear(lines: readonly Buffer[]): void
  /** At its end. */
  isLast(): boolean
}

export function createStopWord(pattern: LineMatcher, now: () => number = () => performance.now()): StopWord {
  let linesSince = Number.POSITIVE_INFINITY
  let saidAt = Number.NEGATIVE_INFINITY
  return {
    hear(lines) {
      const index = lines.findLastIndex(pattern.matches)
      if (index < 0) {
        linesSince += lines.length
        return
      }
      linesSince = lines.length - 1 - index
      saidAt = now()
    },
    isLast: () => linesSince <= LAST_LINES && now() - saidAt <= LAST_MS,
  }
}

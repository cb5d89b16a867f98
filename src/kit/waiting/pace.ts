// A pace for each of many: whoever comes sooner than it may waits, and whoever would have to wait for too long is told so.

export interface PaceOptions {
  unitsPerSecond: number
  /** As many come at once before the pace begins to count. */
  burst?: number
  waitMs: number
  now?: () => number
}

export interface Pace {
  /** How long this many units have to wait; where that is longer than it may be, nothing is taken. */
  take(key: string, units: number): { waitMs: number; isTaken: boolean }
  /** Of what was taken: whoever comes next does not wait for it. */
  giveBack(key: string, units: number): void
}

const SWEEP_AT = 1000

export function createPace(options: PaceOptions): Pace {
  const { unitsPerSecond, burst = 0, waitMs: waitMax, now = () => performance.now() } = options
  const msOf = (units: number) => (1000 * units) / unitsPerSecond
  /** When the next of each would come if it kept to the pace. */
  const nextAt = new Map<string, number>()

  function sweep(at: number): void {
    if (nextAt.size < SWEEP_AT) return
    for (const [key, time] of nextAt) if (time <= at) nextAt.delete(key)
  }

  return {
    take(key, units) {
      const at = now()
      const earliest = at - msOf(burst)
      const begin = Math.max(earliest, nextAt.get(key) ?? earliest)
      const waitMs = Math.max(0, begin - at)
      if (waitMs > waitMax) return { waitMs, isTaken: false }
      sweep(earliest)
      nextAt.set(key, begin + msOf(units))
      return { waitMs, isTaken: true }
    },
    giveBack(key, units) {
      const next = nextAt.get(key)
      if (next !== undefined) nextAt.set(key, next - msOf(units))
    },
  }
}

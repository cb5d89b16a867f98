// The one timer by which all games are measured and asked who plays.
import { STATS_TIERS } from '../../contract/fixed-limits.ts'

const STEP_MS = STATS_TIERS[0].stepSeconds * 1000

/** At the end of each step, and never two at once. */
export function startSampling(sample: () => Promise<void>, onUnexpected: (error: unknown) => void): Disposable {
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  const schedule = () => {
    if (isStopped) return
    const leftMs = STEP_MS - (Date.now() % STEP_MS)
    // A timer that fires a little early must not measure the same step twice.
    const delayMs = leftMs < STEP_MS / 2 ? leftMs + STEP_MS : leftMs
    timer = setTimeout(() => void sample().catch(onUnexpected).finally(schedule), delayMs)
    timer.unref()
  }
  schedule()
  return {
    [Symbol.dispose]() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}

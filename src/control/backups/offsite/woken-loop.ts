// Does the same work each time that somebody has woken it: once for all who did meanwhile, one at a time, and again after a
// while where it failed.
import { setTimeout as delay } from 'node:timers/promises'

export interface WokenLoop {
  /** Soon; after a failure, when its time has come. */
  wake(): void
  /** At once, also after a failure. */
  hasten(): void
  start(): void
  /** Aborts what is under way and waits for it. */
  stop(): Promise<void>
  /** When it is tried again; null where it does not wait after a failure. */
  readonly nextAt: number | null
}

export interface LoopTimes {
  /** What wakes it often comes in twos and threes. */
  settleMs: number
  /** After so many failures in a row. */
  backOffMs: (failures: number) => number
  now: () => number
}

/** The work tells of its failures itself: here they only count. */
export function createWokenLoop(
  work: (signal: AbortSignal) => Promise<void>,
  { settleMs, backOffMs, now }: LoopTimes,
): WokenLoop {
  const stopping = new AbortController()
  let rest = new AbortController()
  let woken = Promise.withResolvers<void>()
  let isWanted = false
  let isHasty = false
  let failures = 0
  let nextAt: number | null = null
  let looping: Promise<void> | undefined

  async function pause(ms: number): Promise<void> {
    if (isHasty) return
    rest = new AbortController()
    const signal = AbortSignal.any([rest.signal, stopping.signal])
    await delay(ms, undefined, { signal, ref: false }).catch(() => {})
  }

  async function turn(): Promise<void> {
    await pause(settleMs)
    isWanted = false
    isHasty = false
    try {
      await work(stopping.signal)
      failures = 0
    } catch {
      isWanted = true
      const waitMs = backOffMs(++failures)
      nextAt = now() + waitMs
      await pause(waitMs)
      nextAt = null
    }
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      if (isWanted) {
        await turn()
      } else {
        await woken.promise
        woken = Promise.withResolvers()
      }
    }
  }

  function wake(): void {
    isWanted = true
    woken.resolve()
  }

  return {
    get nextAt() {
      return nextAt
    },
    wake,
    hasten() {
      isHasty = true
      rest.abort()
      wake()
    },
    start() {
      looping ??= loop()
    },
    async stop() {
      stopping.abort()
      woken.resolve()
      await looping
    },
  }
}

// Periodic tasks, each at its own interval. One that fails is logged and retried at its next turn.
import type { Logger } from 'pino'

export interface Chore {
  name: string
  everyMs: number
  /** Also at the start, not only when the time has passed for the first time. */
  atStart?: boolean
  /** The signal fires when the service stops. */
  run(signal: AbortSignal): Promise<unknown>
}

export interface Upkeep {
  start(): void
  /** Waits for what is under way. */
  stop(): Promise<void>
}

export function createUpkeep(chores: readonly Chore[], log: Logger): Upkeep {
  const timers: NodeJS.Timeout[] = []
  const underWay = new Map<string, Promise<unknown>>()
  const stopping = new AbortController()

  function turn({ name, run }: Chore): void {
    if (underWay.has(name)) return
    const work = run(stopping.signal)
      .catch((error: unknown) => {
        if (!stopping.signal.aborted) log.error({ err: error, chore: name }, 'upkeep failed')
      })
      .finally(() => underWay.delete(name))
    underWay.set(name, work)
  }

  return {
    start() {
      for (const chore of chores) {
        timers.push(setInterval(() => turn(chore), chore.everyMs).unref())
        if (chore.atStart) turn(chore)
      }
    },
    async stop() {
      for (const timer of timers) clearInterval(timer)
      stopping.abort()
      await Promise.all(underWay.values())
    },
  }
}

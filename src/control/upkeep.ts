// What has to be done now and then, each at its own pace. One that fails is logged and tried at its next turn.
import type { Logger } from 'pino'

export interface Chore {
  name: string
  everyMs: number
  run(): Promise<unknown>
}

export interface Upkeep {
  start(): void
  /** Waits for what is under way. */
  stop(): Promise<void>
}

export function createUpkeep(chores: readonly Chore[], log: Logger): Upkeep {
  const timers: NodeJS.Timeout[] = []
  const underWay = new Map<string, Promise<unknown>>()

  function turn({ name, run }: Chore): void {
    if (underWay.has(name)) return
    const work = run()
      .catch((error: unknown) => log.error({ err: error, chore: name }, 'upkeep failed'))
      .finally(() => underWay.delete(name))
    underWay.set(name, work)
  }

  return {
    start() {
      for (const chore of chores) timers.push(setInterval(() => turn(chore), chore.everyMs).unref())
    },
    async stop() {
      for (const timer of timers) clearInterval(timer)
      await Promise.all(underWay.values())
    },
  }
}

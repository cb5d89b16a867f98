// When the queue is checked: as soon as something may run, and at the latest when the next job is due. One check at a
// time.
import type { Logger } from 'pino'
import type { Db } from '../db/tables.ts'
import type { Queue } from './queue.ts'
import * as store from './store.ts'

const AGAIN_AFTER_FAULT_MS = 1000
const SOONEST_MS = 5
const LATEST_MS = 60_000

export interface WakeUps {
  /** Something may run now: of this kind, or of any. */
  wake(kind?: string): void
  start(): void
  /** Resolves when no look is under way. */
  stop(): Promise<void>
}

export function createWakeUps(deps: { db: Db; clock: { now(): number }; log: Logger; queue: Queue }): WakeUps {
  const { db, clock, log, queue } = deps
  let isStopped = true
  let looking: Promise<void> = Promise.resolve()
  let isAboutToLook = false
  let timer: NodeJS.Timeout | undefined

  function wake(kind?: string): void {
    queue.mark(kind)
    if (isAboutToLook) return
    isAboutToLook = true
    looking = looking.then(look).catch((error: unknown) => {
      log.error({ err: error }, 'jobs could not be begun')
      schedule(clock.now() + AGAIN_AFTER_FAULT_MS)
    })
  }

  function schedule(dueAt: number | null): void {
    clearTimeout(timer)
    if (isStopped || dueAt === null) return
    timer = setTimeout(wake, Math.min(Math.max(dueAt - clock.now(), SOONEST_MS), LATEST_MS)).unref()
  }

  async function look(): Promise<void> {
    isAboutToLook = false
    if (isStopped) return
    const now = clock.now()
    await queue.claimDue()
    // What is due and has to wait is looked at again when something of its kind ends.
    schedule(await store.nextDueAt(db, now))
  }

  return {
    wake,
    start() {
      isStopped = false
    },
    async stop() {
      isStopped = true
      clearTimeout(timer)
      await looking
    },
  }
}

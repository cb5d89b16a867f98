// Stops a game the way its template says, one step after the other, until it has ended. SIGKILL comes last.
import type { StopStep } from '../../../contract/games/launch.ts'
import type { Run } from '../runtime.ts'

export interface Timers {
  now(): number
  /** Calls back once, unless it is disposed of before. */
  after(ms: number, work: () => void): Disposable
}

export const SYSTEM_TIMERS: Timers = {
  now: () => Date.now(),
  after(ms, work) {
    const timer = setTimeout(work, ms)
    timer.unref()
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  },
}

export interface Ladder {
  run: Run
  steps: readonly StopStep[]
  timers: Timers
  /** The game has ended, or there is another wish for it. */
  signal: AbortSignal
  /** What is waited for, for people. */
  tell(step: string): void
}

export async function descend({ run, steps, timers, signal, tell }: Ladder): Promise<void> {
  for (const step of steps) {
    if (signal.aborted) return
    tell(step.message ?? describe(step))
    if ('command' in step) await run.input(step.command)
    else await run.signal(step.signal)
    await pause(timers, step.timeoutSeconds * 1000, signal)
  }
  if (signal.aborted) return
  tell('it did not stop in time, and is killed')
  await run.kill()
}

const describe = (step: StopStep) => `waiting for ${'command' in step ? `"${step.command}"` : step.signal} to end it`

/** Until the time is over or the signal fires. */
function pause(timers: Timers, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = timers.after(ms, done)
    function done(): void {
      timer[Symbol.dispose]()
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done, { once: true })
  })
}

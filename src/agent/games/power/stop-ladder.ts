// Stops a game the way its template says, one step after the other, until it has ended. SIGKILL comes last.
import type { Launch, StopStep } from '../../../contract/games/launch.ts'
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

/** How long after a try that was not taken there is another. */
const RETRY_MS = 1000

export interface Ending {
  run: Run
  timers: Timers
  /** The game has ended, or there is another wish for it. */
  signal: AbortSignal
  onUnexpected(error: unknown): void
}

export interface Ladder extends Ending {
  steps: readonly StopStep[]
  /** What is waited for, for people. */
  tell(step: string): void
}

export async function descend(ladder: Ladder): Promise<void> {
  const { run, steps, timers, signal, tell } = ladder
  // Nothing has begun, so there is nothing to save.
  if (run.giveUpWaiting?.()) return
  for (const step of steps) {
    if (signal.aborted) return
    tell(step.message ?? describe(step))
    const stepMs = step.timeoutSeconds * 1000
    // The time to act on it begins when it has been taken.
    if (await isTakenWithin(stepMs, step, ladder)) await pause(timers, stepMs, signal)
  }
  if (signal.aborted) return
  tell('it did not stop in time, and is killed')
  await killUntilTaken(ladder)
}

/** Each step has its time once to be taken, and once more to be acted on. */
export const longestStopMs = ({ stop }: Pick<Launch, 'stop'>): number =>
  stop.reduce((sum, { timeoutSeconds }) => sum + 2000 * timeoutSeconds, 0)

/** Whatever keeps it from being taken, such as a supervisor that waits for its disk: that is not waited for without end. */
async function isTakenWithin(ms: number, step: StopStep, ladder: Ladder): Promise<boolean> {
  const late = new AbortController()
  using _limit = ladder.timers.after(ms, () => late.abort())
  const over = AbortSignal.any([ladder.signal, late.signal])
  const given = new Promise<void>((resolve) => over.addEventListener('abort', () => resolve(), { once: true }))
  await Promise.race([untilTaken(step, ladder, over), given])
  return !over.aborted
}

/** What keeps it from being taken is said once. One that is `gone` may have lost its line only: a run that has ended is over. */
async function untilTaken(step: StopStep, { run, timers, onUnexpected }: Ladder, over: AbortSignal): Promise<void> {
  let isSaid = false
  while (!over.aborted) {
    try {
      const error = 'command' in step ? await run.input(step.command) : await run.signal(step.signal)
      if (!error) return
    } catch (error) {
      if (!isSaid) onUnexpected(error)
      isSaid = true
    }
    await pause(timers, RETRY_MS, over)
  }
}

/** At least one try, of whose outcome `tried` is told. What keeps it from being taken is said once. */
export async function killUntilTaken(ending: Ending, tried = () => {}): Promise<void> {
  const { run, timers, signal } = ending
  for (let onUnexpected: Ending['onUnexpected'] = ending.onUnexpected; ; onUnexpected = () => {}) {
    try {
      return await run.kill()
    } catch (error) {
      onUnexpected(error)
    } finally {
      tried()
    }
    await pause(timers, RETRY_MS, signal)
    if (signal.aborted) return
  }
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

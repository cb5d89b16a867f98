// A program of an installation, run by the runtime that runs the game: as isolated, as limited, and as independent of the
// service.
import { killUntilTaken, type Timers } from '../power/stop-ladder.ts'
import { type GameRuntime, hasEnded, type Run, type RunEnd, type RunEvents, type StartRequest } from '../runtime.ts'

export interface ProgramRequest extends Omit<StartRequest, 'runId'> {
  /** A run of an earlier service that may still be under way. */
  earlierRunId: string | null
  /** Must be durable when it returns: it is how the run is found again. */
  newRunId(): string
  /** Kills it, until that is taken: whoever has its files to itself afterwards finds nobody who writes. */
  signal: AbortSignal
  /** A kill that was not taken is left to the next service. */
  stopping: AbortSignal | undefined
  timers: Timers
  lines(): void
  onUnexpected(error: unknown): void
}

export async function runToEnd(runtime: GameRuntime, program: ProgramRequest): Promise<RunEnd> {
  const { earlierRunId, newRunId, signal, stopping, timers, lines, onUnexpected, ...request } = program
  const over = Promise.withResolvers<RunEnd>()
  const ended = new AbortController()
  const events: RunEvents = { ready() {}, lines, ended: over.resolve }
  const { serverId } = request
  const found = earlierRunId === null ? 'lost' : await runtime.find({ serverId, runId: earlierRunId }, events)
  if (found !== 'lost' && hasEnded(found)) return found
  signal.throwIfAborted()
  const run: Run = found === 'lost' ? (await runtime.start({ ...request, runId: newRunId() }, events)).run : found
  const kill = () => void killUntilTaken({ run, timers, signal: ended.signal, onUnexpected: untaken })
  function untaken(error: unknown): void {
    onUnexpected(error)
    stopping?.addEventListener('abort', () => over.reject(error), { once: true, signal: ended.signal })
    if (stopping?.aborted) over.reject(error)
  }
  signal.addEventListener('abort', kill, { once: true })
  if (signal.aborted) kill()
  try {
    return await over.promise
  } catch (error) {
    run.detach()
    throw error
  } finally {
    ended.abort()
    signal.removeEventListener('abort', kill)
  }
}

/** Ends it, wherever it is, and waits for that. Where it fails, it can be tried again. */
export async function stopRun(runtime: GameRuntime, request: { serverId: string; runId: string }): Promise<void> {
  const over = Promise.withResolvers<void>()
  const events: RunEvents = { ready() {}, lines() {}, ended: () => over.resolve() }
  const found = await runtime.find(request, events)
  if (found === 'lost' || hasEnded(found)) return
  await found.kill().catch((error: unknown) => {
    found.detach()
    throw error
  })
  await over.promise
}

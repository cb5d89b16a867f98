// One run of a game that is rehearsed: up, and down again by its ladder.
import { setTimeout as delay } from 'node:timers/promises'
import type { RehearsalReport } from '../../contract/agent/agent-games.ts'
import { fail } from '../../contract/errors.ts'
import { REHEARSAL_LOG, REHEARSAL_SETTLE_MS, REHEARSAL_STAYS_MS } from '../../contract/fixed-limits.ts'
import { readPage } from '../games/console/console-reader.ts'
import { descend, SYSTEM_TIMERS } from '../games/power/stop-ladder.ts'
import type { GameRuntime, Run, RunEnd, StartRequest } from '../games/runtime.ts'

export interface Play {
  runtime: GameRuntime
  request: StartRequest
  timeoutSeconds: number
  signal: AbortSignal
  onUnexpected(error: unknown): void
}

const NOT_BEGUN = 'The game did not begin: what isolates it could not do its work here.'
/** After it was killed. */
const ENDS_WITHIN_MS = 10_000

type Said = Omit<RehearsalReport, 'log'>

/** Nothing of it runs when this ends, in whichever way. Fails with the reason of the signal, or as a start fails. */
export async function playRun({ runtime, request, timeoutSeconds, signal, onUnexpected }: Play): Promise<Said> {
  const { launch } = request
  const ready = Promise.withResolvers<'ready'>()
  const ended = Promise.withResolvers<RunEnd>()
  const over = new AbortController()
  /** Before it has started, such as a pull of its image. */
  let waitsFor: string | null = null
  const { run } = await runtime.start(request, {
    ready: () => ready.resolve('ready'),
    step: (step) => {
      waitsFor = step
    },
    lines() {},
    ended(end) {
      ended.resolve(end)
      over.abort()
    },
  })
  const isSilent = launch.ready.length === 0
  try {
    if (run.isReady() && !isSilent) ready.resolve('ready')
    // Of one that never says so all that can be seen is whether it stays.
    const waitMs = isSilent ? REHEARSAL_SETTLE_MS : timeoutSeconds * 1000
    const awaited = isSilent ? [ended.promise] : [ready.promise, ended.promise]
    const first = await firstOf<'ready' | RunEnd>(signal, awaited, waitMs)
    if (first !== 'ready' && first !== undefined) {
      // Nothing of the backup has run.
      if (first.hasBegun === false) throw fail('isolation_missing', NOT_BEGUN)
      return { outcome: 'failed', reason: endedEarly(first) }
    }
    if (waitsFor !== null) throw fail('isolation_missing', `The game did not begin in time: ${waitsFor}.`)
    if (first === undefined && !isSilent)
      return { outcome: 'failed', reason: `The game was not up within ${timeoutSeconds} s.` }
    // One that falls over at once was not up; and some take no signal well in the instant in which they say that they are.
    const early = isSilent ? undefined : await firstOf(signal, [ended.promise], REHEARSAL_STAYS_MS)
    if (early) return { outcome: 'failed', reason: endedEarly(early) }
    const end = await stop(run, launch.stop, { ended: ended.promise, over: over.signal, signal, onUnexpected })
    return { outcome: 'passed', reason: remark(isSilent, end) }
  } finally {
    if (!over.signal.aborted) {
      await run.kill().catch(onUnexpected)
      await firstOf(over.signal, [ended.promise], ENDS_WITHIN_MS).catch(() => {})
    }
    run.detach()
  }
}

async function stop(
  run: Run,
  steps: StartRequest['launch']['stop'],
  {
    ended,
    over,
    signal,
    onUnexpected,
  }: Pick<Play, 'signal' | 'onUnexpected'> & { ended: Promise<RunEnd>; over: AbortSignal },
): Promise<RunEnd> {
  const until = AbortSignal.any([over, signal])
  await descend({ run, steps, timers: SYSTEM_TIMERS, signal: until, tell() {}, onUnexpected })
  return (await firstOf(signal, [ended])) as RunEnd
}

/** Undefined once the time is over. */
async function firstOf<T>(signal: AbortSignal, awaited: Promise<T>[], waitMs?: number): Promise<T | undefined> {
  const abort = new AbortController()
  const cancelled = delay(2 ** 31 - 1, undefined, { signal: AbortSignal.any([signal, abort.signal]) })
  const late = waitMs === undefined ? [] : [delay(waitMs, undefined, { signal: abort.signal })]
  try {
    return await Promise.race([...awaited, ...late, cancelled])
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    for (const timer of [...late, cancelled]) timer.catch(() => {})
    abort.abort()
  }
}

function endedEarly({ code, signal, isOutOfMemory }: RunEnd): string {
  if (isOutOfMemory) return 'The game ended before it was up for good: it used more memory than it may.'
  return `The game ended before it was up for good, ${signal ? `by ${signal}` : `with exit code ${code ?? 'unknown'}`}.`
}

function remark(isSilent: boolean, end: RunEnd): string | null {
  const remarks = [
    ...(isSilent ? [`Its template names no line that says that it is up; it ran for ${REHEARSAL_SETTLE_MS} ms.`] : []),
    ...(end.signal === 'SIGKILL' ? ['It did not stop as its template says, and was killed.'] : []),
  ]
  return remarks.length > 0 ? remarks.join(' ') : null
}

/** The last lines that fit, oldest first. */
export async function readLog(folder: string, serverId: string): Promise<string[]> {
  const { lines: newest } = await readPage(folder, serverId, { before: null, limit: REHEARSAL_LOG.lines, q: null })
  const kept: string[] = []
  let bytes = 0
  for (const { text } of newest) {
    const line = text.slice(0, REHEARSAL_LOG.lineChars).toWellFormed()
    bytes += Buffer.byteLength(line) + 1
    if (bytes > REHEARSAL_LOG.bytes) break
    kept.push(line)
  }
  return kept.reverse()
}

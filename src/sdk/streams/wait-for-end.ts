// Something that changes until it has ended, such as a job or a backup: waited for by the stream that tells of each of its
// states. Where no stream is to be had, it is asked for again and again.
import { sleep } from '../backoff.ts'
import { ApiError, isApiError } from '../errors.ts'
import { isPassingRefusal, pauseAfter } from '../retry.ts'
import { openEvents } from './live-events.ts'

const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 2000
const UNDER_WAY = ['queued', 'running']

/** How such a stream is asked for: one that does not come at once is done without. */
export const STREAM = { accept: 'text/event-stream', retries: 0 }

export interface StateSource<T> {
  read(): Promise<T>
  /** One attempt; the answer is a stream of events. */
  open(signal: AbortSignal): Promise<Response>
}

/**
 * Resolves with the first state that is an end, good or bad. Every state that comes is told, that one too. Once there has
 * been one, a service that stays away for a minute, as when it is started anew, is waited for.
 */
export async function untilEnded<T extends { status: string }>(
  source: StateSource<T>,
  { onProgress, signal }: { onProgress?: (state: T) => void; signal?: AbortSignal },
): Promise<T> {
  const streams = { notBefore: 0 }
  let isKnown = false
  let failures = 0
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 1.5)) {
    try {
      for await (const state of statesOf(source, streams, signal)) {
        isKnown = true
        failures = 0
        onProgress?.(state)
        if (!UNDER_WAY.includes(state.status)) return state
      }
    } catch (error) {
      if (!isKnown) throw error
      await pauseAfter(error, ++failures, signal ? { signal } : {})
    }
    await sleep(pauseMs, signal)
  }
}

/** As long as the stream lasts; then once more, which tells what has become of it, or why nothing can be told. */
async function* statesOf<T>(
  source: StateSource<T>,
  streams: { notBefore: number },
  signal: AbortSignal | undefined,
): AsyncGenerator<T> {
  try {
    if (Date.now() >= streams.notBefore)
      for await (const { data } of await openEvents(source.open, signal)) yield JSON.parse(data) as T
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof ApiError) {
      if (!isPassingRefusal(error) && !isApiError(error, 'not_acceptable')) throw error
      streams.notBefore = Date.now() + (error.retryAfterMs ?? 0)
    }
  }
  yield await source.read()
}

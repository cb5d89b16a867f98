// Something that is written to without end, such as activity, as it happens, across as many connections as it takes. Nothing is
// missed and nothing comes twice: the place to go on from is known before the first connection, and moves with each event that
// was read whole.
import { backOffMs, sleep } from '../backoff.ts'
import { ApiError } from '../errors.ts'
import { isPassingRefusal } from '../retry.ts'
import { openEvents } from './live-events.ts'

export interface FollowEventsOptions {
  /** Ends the iteration quietly. */
  signal?: AbortSignal
  /** The id of the last event that was seen; without it, only what is written from now on. */
  lastEventId?: string
  /** Told when a connection stands, the first one and each that was made anew, also while nothing is written. */
  onConnect?: () => void
  /** Told when the connection is lost, before it is made anew. */
  onReconnect?: (error: Error | null) => void
  /** A connection that is silent for longer is taken for dead. */
  silenceMs?: number
}

export interface FollowedSource {
  /** Without it, what is written while the very first connection breaks would be lost. */
  newestId(signal: AbortSignal | undefined): Promise<string>
  /** `retries`: the first connection is tried as any request is; later ones are made anew here. */
  open(lastId: string, signal: AbortSignal, how: { retries?: number }): Promise<Response>
}

const RECONNECT_MS = 1000

export async function* followEvents<T>(
  source: FollowedSource,
  options: FollowEventsOptions,
): AsyncGenerator<T, void, undefined> {
  const { signal, onConnect, onReconnect, silenceMs } = options
  let lastId = options.lastEventId ?? ''
  let retryMs = RECONNECT_MS
  let failures = 0
  let begun = false
  while (!signal?.aborted) {
    let lost: Error | null = null
    try {
      lastId ||= await source.newestId(signal)
      const from = lastId
      const how = begun ? { retries: 0 } : {}
      const connection = await openEvents((ended) => source.open(from, ended, how), signal, silenceMs)
      begun = true
      onConnect?.()
      for await (const event of connection) {
        failures = 0
        retryMs = event.retryMs ?? retryMs
        lastId = event.id || lastId
        yield JSON.parse(event.data) as T
      }
    } catch (error) {
      if (signal?.aborted) return
      if (!begun || !isPassing(error)) throw error
      lost = error
    }
    if (signal?.aborted) return
    onReconnect?.(lost)
    failures++
    const asked = lost instanceof ApiError ? (lost.retryAfterMs ?? 0) : 0
    await sleep(asked + backOffMs(failures, retryMs), signal).catch(() => {})
  }
}

/** Whether it may be over by the next attempt. A token that was revoked or a server that is gone stays so. */
function isPassing(error: unknown): error is Error {
  if (error instanceof ApiError) return isPassingRefusal(error)
  return error instanceof Error && !(error instanceof SyntaxError)
}

// A stream that is followed while somebody looks. A browser has six connections to the service for all of its tabs together, and a
// stream holds one of them: in a tab that is hidden it ends, and it goes on where it was as soon as the tab is shown.
import { ApiError, isApiError, TransportError } from '../../../../src/sdk/index.ts'

const RETRY_MS = 2000

export type StreamState = 'live' | 'lost' | { error: unknown }

/** What `follow` hands to the client of the service. */
export interface Connection {
  signal: AbortSignal
  onConnect: () => void
  onReconnect: () => void
}

/** Where to wait for: replaced by tests, which have no page. */
export interface Sight {
  readonly isHidden: boolean
  /** Called whenever it is hidden or shown. */
  onChange(listener: () => void, signal: AbortSignal): void
}

const PAGE: Sight = {
  get isHidden() {
    return document.hidden
  },
  onChange: (listener, signal) => document.addEventListener('visibilitychange', listener, { signal }),
}

/**
 * `follow` takes each event and remembers its place by itself; it is called again after a pause when the service was away, also
 * for the first time. Ends with the signal, or with an error that stays.
 */
export async function followInSight(
  follow: (connection: Connection) => Promise<void>,
  onState: (state: StreamState) => void,
  signal: AbortSignal,
  sight: Sight = PAGE,
): Promise<void> {
  while (!signal.aborted) {
    const turn = new AbortController()
    const ended = AbortSignal.any([signal, turn.signal])
    await shown(sight, ended)
    sight.onChange(() => sight.isHidden && turn.abort(), ended)
    try {
      const say = (state: StreamState) => ended.aborted || onState(state)
      await follow({ signal: ended, onConnect: () => say('live'), onReconnect: () => say('lost') })
    } catch (error) {
      if (!ended.aborted) {
        if (isApiError(error, 'unauthenticated')) return
        if (!isPassing(error)) return onState({ error })
        onState('lost')
        await pause(ended)
      }
    } finally {
      turn.abort()
    }
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 429 || error.status >= 500
  return error instanceof TransportError
}

function shown(sight: Sight, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (!sight.isHidden || signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
    sight.onChange(() => sight.isHidden || resolve(), signal)
  })
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, RETRY_MS)
    signal.addEventListener('abort', () => [clearTimeout(timer), resolve()], { once: true })
  })
}

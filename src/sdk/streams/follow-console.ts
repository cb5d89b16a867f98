// A server's console as it is written.
import { type ConsoleLine, readConsole } from '../../contract/games/console.ts'
import type { Transport } from '../transport.ts'
import { type FollowEventsOptions, followEvents } from './follow-events.ts'

export interface FollowConsoleOptions extends FollowEventsOptions {
  /** Only lines with this text. */
  q?: string
}

export function followConsole(
  transport: Transport,
  serverId: string,
  { q, ...options }: FollowConsoleOptions,
): AsyncGenerator<ConsoleLine, void, undefined> {
  const params = { serverId }
  const query = q === undefined ? {} : { q }
  return followEvents(
    {
      async newestId(signal) {
        const page = await transport.call(readConsole, { params, query: { limit: 1 }, ...(signal ? { signal } : {}) })
        return String(page.data[0]?.line ?? 0)
      },
      open: (lastId, signal, how) =>
        transport.open(
          readConsole,
          { params, query, headers: { 'last-event-id': lastId }, signal },
          { accept: 'text/event-stream', ...how },
        ),
    },
    options,
  )
}

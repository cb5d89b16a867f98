// What a server's game uses, as it is measured.
import { readStats, type StatsPoint } from '../../contract/games/stats.ts'
import type { Transport } from '../transport.ts'
import { type FollowEventsOptions, followEvents } from './follow-events.ts'

export function followStats(
  transport: Transport,
  serverId: string,
  options: FollowEventsOptions,
): AsyncGenerator<StatsPoint, void, undefined> {
  const params = { serverId }
  return followEvents(
    {
      async newestId(signal) {
        const { data } = await transport.call(readStats, { params, query: {}, ...(signal ? { signal } : {}) })
        return String(Date.parse(data.at(-1)?.at ?? new Date(0).toISOString()))
      },
      open: (lastId, signal, how) =>
        transport.open(
          readStats,
          { params, query: {}, headers: { 'last-event-id': lastId }, signal },
          { accept: 'text/event-stream', ...how },
        ),
    },
    options,
  )
}

// A server's activity as it happens.
import { type ActivityEntry, type ActivityQuery, listActivity } from '../../contract/activity.ts'
import type { Transport } from '../transport.ts'
import { type FollowEventsOptions, followEvents } from './follow-events.ts'

export interface FollowOptions extends FollowEventsOptions {
  query?: Omit<ActivityQuery, 'limit' | 'cursor'>
}

/** Sorts before every entry, so that following begins with the first one there will be. */
const BEFORE_ALL = 'act_0'

export function followActivity(
  transport: Transport,
  serverId: string,
  { query = {}, ...options }: FollowOptions,
): AsyncGenerator<ActivityEntry, void, undefined> {
  const params = { serverId }
  return followEvents(
    {
      async newestId(signal) {
        const page = await transport.call(listActivity, { params, query: { limit: 1 }, ...(signal ? { signal } : {}) })
        return page.data[0]?.id ?? BEFORE_ALL
      },
      open: (lastId, signal, how) =>
        transport.open(
          listActivity,
          { params, query, headers: { 'last-event-id': lastId }, signal },
          { accept: 'text/event-stream', ...how },
        ),
    },
    options,
  )
}

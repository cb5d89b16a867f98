import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import type { ActivityEntry, ActivityQuery, ExportFormat, Page } from '../../../src/sdk/index.ts'
import { client } from './client.ts'
import { type Connection, followInSight } from './live/live-stream.ts'
import { useItemsOf } from './live/paged-list.ts'

/** What is looked for; a field that is absent does not matter. */
export type ActivityFilter = Pick<ActivityQuery, 'event' | 'actor' | 'since' | 'until' | 'q'>

const HISTORY_LENGTH = 50
const RETRY_MS = 2000
const keyOf = (serverId: string, filter: ActivityFilter) => ['activity', serverId, filter] as const

/** Pages of what was, newest first, with what happens put in front. */
export function useActivity(serverId: string, filter: ActivityFilter) {
  const pages = useInfiniteQuery({
    queryKey: keyOf(serverId, filter),
    queryFn: ({ signal, pageParam }) =>
      client.activity.list(
        serverId,
        { limit: 50, ...filter, ...(pageParam === null ? {} : { cursor: pageParam }) },
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }: Page<ActivityEntry>) => nextCursor,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnMount: 'always',
    // The first answer alone: what happens after it comes by the stream.
    refetchInterval: ({ state: { data, error } }) => (error && !data ? RETRY_MS : false),
  })
  const read = useItemsOf(pages.data?.pages, idOf)
  const { arrived, isLive } = useLiveEntries(serverId, filter, pages.data && newestOf(pages.data.pages[0]))
  // What comes is newer than all that was read.
  return { ...pages, isLive, entries: read && [...arrived.toReversed(), ...read] }
}

const idOf = ({ id }: ActivityEntry) => id
const newestOf = (page: Page<ActivityEntry> | undefined) => page?.data[0]?.id ?? 'act_0'

/**
 * What has happened after the newest entry of the first page, in that order. It is kept apart from the pages: while one of them is
 * read, what is put into the others would be lost. When the first is read again it begins anew, after the newest of that.
 */
function useLiveEntries(serverId: string, filter: ActivityFilter, after: string | undefined) {
  const [isLive, setLive] = useState(true)
  // Equal filters are one: a new object for the same must not begin a new stream.
  const text = JSON.stringify(filter)
  const key = `${serverId} ${text} ${after}`
  const [arrived, setArrived] = useState<{ key: string; entries: readonly ActivityEntry[] }>({ key, entries: [] })
  useEffect(() => {
    if (after === undefined) return
    const closed = new AbortController()
    const query = JSON.parse(text) as ActivityFilter
    let lastEventId = after
    const follow = async (connection: Connection) => {
      for await (const entry of client.activity.follow(serverId, { ...connection, query, lastEventId })) {
        lastEventId = entry.id
        setArrived((before) => ({ key, entries: before.key === key ? [...before.entries, entry] : [entry] }))
      }
    }
    void followInSight(follow, (state) => setLive(state === 'live'), closed.signal)
    return () => closed.abort()
  }, [serverId, text, after, key])
  return { isLive, arrived: arrived.key === key ? arrived.entries : [] }
}

/** Whoever is known to have done something here: those of the entries that are loaded, and of those that were before. */
export function useActors(entries: readonly ActivityEntry[] | undefined): { id: string; name: string }[] {
  const [known, setKnown] = useState<ReadonlyMap<string, string>>(new Map())
  const found = useMemo(() => new Map((entries ?? []).map(({ actor }) => [actor.id, actor.name])), [entries])
  useEffect(() => {
    setKnown((before) => ([...found.keys()].every((id) => before.has(id)) ? before : new Map([...before, ...found])))
  }, [found])
  return [...known].map(([id, name]) => ({ id, name })).sort((one, other) => one.name.localeCompare(other.name))
}

/** Commands that were sent to the game, newest first. */
export function useCommandHistory(serverId: string, isWanted: boolean) {
  return useQuery({
    queryKey: ['commands', serverId],
    queryFn: async ({ signal }) => {
      const query = { event: 'console.command_sent', limit: HISTORY_LENGTH }
      const { data } = await client.activity.list(serverId, query, { signal })
      return data.map(({ id, actor, timestamp, properties }) => ({
        id,
        by: actor.name,
        at: timestamp,
        command: String(properties.command ?? ''),
      }))
    },
    enabled: isWanted,
    staleTime: 0,
  })
}

export async function exportActivity(serverId: string, format: ExportFormat, filter: ActivityFilter): Promise<Blob> {
  const bytes = await client.activity.export(serverId, format, filter)
  return new Response(bytes).blob()
}

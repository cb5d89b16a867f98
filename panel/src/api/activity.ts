import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import type { ActivityEntry, ActivityQuery, ExportFormat, Page } from '../../../src/sdk/index.ts'
import { client } from './client.ts'
import { type Connection, followInSight } from './live-stream.ts'

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
  const newest = pages.data?.pages[0]?.data[0]?.id
  const isLoaded = pages.data !== undefined
  const isLive = useLiveEntries(serverId, filter, isLoaded ? (newest ?? 'act_0') : null)
  return { ...pages, isLive, entries: pages.data?.pages.flatMap((page) => page.data) }
}

function useLiveEntries(serverId: string, filter: ActivityFilter, from: string | null): boolean {
  const queries = useQueryClient()
  const [isLive, setLive] = useState(true)
  const isReady = from !== null
  // Equal filters are one: a new object for the same must not begin a new stream.
  const text = JSON.stringify(filter)
  // biome-ignore lint/correctness/useExhaustiveDependencies: `from` moves with each entry, and the stream goes on by itself
  useEffect(() => {
    if (from === null) return
    const closed = new AbortController()
    const query = JSON.parse(text) as ActivityFilter
    let lastEventId = from
    const follow = async (connection: Connection) => {
      for await (const entry of client.activity.follow(serverId, { ...connection, query, lastEventId })) {
        lastEventId = entry.id
        queries.setQueryData(keyOf(serverId, query), (data: Pages | undefined) => withEntry(data, entry))
      }
    }
    void followInSight(follow, (state) => setLive(state === 'live'), closed.signal)
    return () => closed.abort()
  }, [serverId, text, isReady, queries])
  return isLive
}

interface Pages {
  pages: Page<ActivityEntry>[]
  pageParams: (string | null)[]
}

function withEntry(data: Pages | undefined, entry: ActivityEntry): Pages | undefined {
  const [first, ...rest] = data?.pages ?? []
  if (!data || !first || first.data.some(({ id }) => id === entry.id)) return data
  return { ...data, pages: [{ ...first, data: [entry, ...first.data] }, ...rest] }
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

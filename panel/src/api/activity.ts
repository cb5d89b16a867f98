import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { type ActivityEntry, isApiError, type Page } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

const keyOf = (serverId: string, search: string) => ['activity', serverId, search] as const

/** Pages of what was, newest first, with what happens put in front. */
export function useActivity(serverId: string, search: string) {
  const query = search === '' ? {} : { q: search }
  const pages = useInfiniteQuery({
    queryKey: keyOf(serverId, search),
    queryFn: ({ signal, pageParam }) =>
      client.activity.list(
        serverId,
        { limit: 50, ...query, ...(pageParam === null ? {} : { cursor: pageParam }) },
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }: Page<ActivityEntry>) => nextCursor,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnMount: 'always',
  })
  const newest = pages.data?.pages[0]?.data[0]?.id
  const isLoaded = pages.data !== undefined
  const isLive = useLiveEntries(serverId, search, isLoaded ? (newest ?? 'act_0') : null)
  return { ...pages, isLive, entries: pages.data?.pages.flatMap((page) => page.data) }
}

function useLiveEntries(serverId: string, search: string, from: string | null): boolean {
  const queries = useQueryClient()
  const [isLive, setLive] = useState(true)
  const isReady = from !== null
  // biome-ignore lint/correctness/useExhaustiveDependencies: `from` moves with each entry, and the stream goes on by itself
  useEffect(() => {
    if (from === null) return
    const closed = new AbortController()
    const { signal } = closed
    const query = search === '' ? {} : { q: search }
    const options = { signal, query, lastEventId: from, onReconnect: () => setLive(false) }
    const run = async () => {
      for await (const entry of client.activity.follow(serverId, options)) {
        setLive(true)
        queries.setQueryData(keyOf(serverId, search), (data: Pages | undefined) => withEntry(data, entry))
      }
    }
    run().catch((error: unknown) => {
      if (!signal.aborted && !isApiError(error, 'unauthenticated')) setLive(false)
    })
    return () => closed.abort()
  }, [serverId, search, isReady, queries])
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

export async function exportActivity(serverId: string, format: 'csv' | 'ndjson', search: string): Promise<Blob> {
  const bytes = await client.activity.export(serverId, format, search === '' ? {} : { q: search })
  return new Response(bytes).blob()
}

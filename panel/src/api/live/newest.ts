// Lists that are too long to be read again all the time: the newest entry of the activity says whether anything of theirs has changed.
import { type QueryKey, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { useMay } from '../access/session.ts'
import { client } from '../client.ts'

const POLL_MS = 2000

/** Reads what has the key again whenever something of the event, such as `backup.*`, is recorded, and once at the beginning. */
export function useRefreshWhenRecorded(serverId: string, event: string, queryKey: QueryKey, isWanted: boolean): void {
  const queries = useQueryClient()
  const mayAsk = useMay()('activity:read')
  const { data: newest } = useQuery({
    queryKey: ['newest', serverId, event],
    queryFn: async ({ signal }) => {
      const { data } = await client.activity.list(serverId, { event, limit: 1 }, { signal })
      return data[0]?.id ?? null
    },
    enabled: isWanted && mayAsk,
    refetchInterval: POLL_MS,
  })
  const known = useRef<string | null>(undefined)
  const key = JSON.stringify(queryKey)
  useEffect(() => {
    if (newest === undefined || newest === known.current) return
    known.current = newest
    void queries.invalidateQueries({ queryKey: JSON.parse(key) as QueryKey })
  }, [newest, key, queries])
}

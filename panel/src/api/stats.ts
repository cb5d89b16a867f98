import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { Server, StatsPoint } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

/** What is kept, by how far back it is looked. */
export const RANGES = { hour: 3600, quarter: 6 * 3600, day: 24 * 3600, week: 7 * 24 * 3600 } as const
export type Range = keyof typeof RANGES

/** Of the newest, until a series is asked for anew. */
const LIVE_POINTS_MAX = 720
/** Fine steps are kept for exactly an hour and a day: a request that takes a moment must not be answered in coarse ones. */
const MARGIN_MS = 15_000
const REFRESH_MS = 60_000
const PLAYERS_POLL_MS = 2000

export interface Series {
  points: readonly StatsPoint[]
  /** Seconds from one point to the next; those that came since may lie closer. */
  stepSeconds: number
}

/** The series of a range, with each point that is measured meanwhile at its end. */
export function useStats(serverId: string, range: Range) {
  const query = useQuery({
    queryKey: ['stats', serverId, range],
    queryFn: ({ signal }) => {
      const since = new Date(Date.now() - RANGES[range] * 1000 + MARGIN_MS).toISOString()
      return client.stats.read(serverId, { since }, { signal })
    },
    refetchInterval: REFRESH_MS,
    refetchOnWindowFocus: false,
  })
  const live = useLivePoints(serverId)
  const { data } = query
  const series: Series | null = data
    ? { points: [...data.data, ...later(live, data.data.at(-1), data.step)], stepSeconds: data.step }
    : null
  return { series, newest: live.at(-1) ?? series?.points.at(-1) ?? null, error: query.error, refetch: query.refetch }
}

function later(live: readonly StatsPoint[], last: StatsPoint | undefined, stepSeconds: number): readonly StatsPoint[] {
  if (!last) return live
  const from = Date.parse(last.at) + stepSeconds * 1000
  return live.filter(({ at }) => Date.parse(at) >= from)
}

function useLivePoints(serverId: string): readonly StatsPoint[] {
  const [points, setPoints] = useState<readonly StatsPoint[]>([])
  useEffect(() => {
    const closed = new AbortController()
    const { signal } = closed
    const run = async () => {
      for await (const point of client.stats.follow(serverId, { signal }))
        setPoints((before) => [...before, point].slice(-LIVE_POINTS_MAX))
    }
    // The series is asked for again in a minute, whatever has ended this.
    run().catch(() => {})
    return () => {
      closed.abort()
      setPoints([])
    }
  }, [serverId])
  return points
}

export function usePlayers({ id, power }: Server) {
  const isOn = power.state === 'running'
  return useQuery({
    queryKey: ['players', id, isOn],
    queryFn: ({ signal }) => client.players.read(id, { signal }),
    enabled: isOn,
    refetchInterval: PLAYERS_POLL_MS,
  })
}

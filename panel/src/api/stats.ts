import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Server, StatsPoint } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

/** What is kept, by how far back it is looked. */
export const RANGES = { hour: 3600, quarter: 6 * 3600, day: 24 * 3600, week: 7 * 24 * 3600 } as const
export type Range = keyof typeof RANGES

/** Fine steps are kept for exactly an hour and a day: a request that takes a moment must not be answered in coarse ones. */
const MARGIN_MS = 15_000
const REFRESH_MS = 60_000
/** How late a new point may be. Asked for, not streamed: a stream would hold one of the browser's six connections. */
const POLL_MS = 2000
/** More than lies between two answers of the whole series. */
const RECENT_MS = 2 * REFRESH_MS

export interface Series {
  points: readonly StatsPoint[]
  /** Seconds from one point to the next; those that came since may lie closer. */
  stepSeconds: number
}

/** The series of a range, with each point that is measured meanwhile at its end. */
export function useStats(serverId: string, range: Range) {
  const query = useQuery({
    queryKey: ['stats', serverId, range],
    queryFn: ({ signal }) => readSince(serverId, RANGES[range] * 1000 - MARGIN_MS, signal),
    refetchInterval: REFRESH_MS,
    staleTime: REFRESH_MS,
  })
  const { data: recent } = useQuery({
    queryKey: ['stats', serverId, 'recent'],
    queryFn: ({ signal }) => readSince(serverId, RECENT_MS, signal),
    refetchInterval: POLL_MS,
  })
  const { data } = query
  const series: Series | null = useMemo(
    () =>
      data
        ? { points: [...data.data, ...later(recent?.data ?? [], data.data.at(-1), data.step)], stepSeconds: data.step }
        : null,
    [data, recent],
  )
  return {
    series,
    newest: recent?.data.at(-1) ?? series?.points.at(-1) ?? null,
    error: query.error,
    refetch: query.refetch,
  }
}

function readSince(serverId: string, agoMs: number, signal: AbortSignal) {
  return client.stats.read(serverId, { since: new Date(Date.now() - agoMs).toISOString() }, { signal })
}

function later(
  recent: readonly StatsPoint[],
  last: StatsPoint | undefined,
  stepSeconds: number,
): readonly StatsPoint[] {
  if (!last) return recent
  const from = Date.parse(last.at) + stepSeconds * 1000
  return recent.filter(({ at }) => Date.parse(at) >= from)
}

export function usePlayers({ id, power }: Server) {
  const isOn = power.state === 'running'
  return useQuery({
    queryKey: ['players', id, isOn],
    queryFn: ({ signal }) => client.players.read(id, { signal }),
    enabled: isOn,
    refetchInterval: POLL_MS,
  })
}

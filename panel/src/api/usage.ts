import { useQuery } from '@tanstack/react-query'
import type { Server, StatsPoint } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

/** The service measures every ten seconds. */
const RECENT_MS = 45_000
const POLL_MS = 2000

/** What the game uses now; null while it does not run, and until it was measured. Only what is looked at is asked for. */
export function useUsage({ id, power }: Server, isSeen: boolean): StatsPoint | null {
  const isRunning = power.state === 'running' || power.state === 'starting' || power.state === 'stopping'
  const { data } = useQuery({
    queryKey: ['usage', id],
    queryFn: async ({ signal }) => {
      const since = new Date(Date.now() - RECENT_MS).toISOString()
      return (await client.stats.read(id, { since }, { signal })).data.at(-1) ?? null
    },
    enabled: isRunning && isSeen,
    refetchInterval: POLL_MS,
  })
  return isRunning ? (data ?? null) : null
}

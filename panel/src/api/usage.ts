import { useQuery } from '@tanstack/react-query'
import type { Server, StatsPoint } from '../../../src/sdk/index.ts'
import { useMay } from './access/session.ts'
import { client } from './client.ts'
import { useIsLeaving } from './servers.ts'

/** The service measures every ten seconds. */
const RECENT_MS = 45_000
const POLL_MS = 2000

/** What the game uses now; null while it does not run, and until it was measured. Only what is looked at is asked for. */
export function useUsage(server: Server, isSeen: boolean): StatsPoint | null {
  const { id, power } = server
  const isLeaving = useIsLeaving(server)
  const isRunning = power.state === 'running' || power.state === 'starting' || power.state === 'stopping'
  const { data } = useQuery({
    queryKey: ['usage', id],
    queryFn: async ({ signal }) => {
      const since = new Date(Date.now() - RECENT_MS).toISOString()
      return (await client.stats.read(id, { since }, { signal })).data.at(-1) ?? null
    },
    enabled: isRunning && isSeen && !isLeaving,
    refetchInterval: POLL_MS,
  })
  return isRunning ? (data ?? null) : null
}

const UNMEASURED_POLL_MS = 10_000

export interface DiskUse {
  bytes: number
  /** It is counted every few minutes: whoever shows it says of when it is. */
  at: string
}

/** Of its files and trash, as the service measured them last. It does so every few minutes: until the first time it is asked. */
export function useDiskUse(server: Server, isSeen = true): DiskUse | null {
  const { id, diskUsage } = server
  const isLeaving = useIsLeaving(server)
  const mayAsk = useMay()('files:read')
  const { data, dataUpdatedAt } = useQuery({
    queryKey: ['disk-usage', id],
    queryFn: ({ signal }) => client.files.usage(id, { signal }),
    enabled: diskUsage === null && mayAsk && isSeen && !isLeaving,
    refetchInterval: UNMEASURED_POLL_MS,
  })
  if (diskUsage) return { bytes: diskUsage.sizeBytes, at: diskUsage.measuredAt }
  return data ? { bytes: data.usedBytes, at: new Date(dataUpdatedAt).toISOString() } : null
}

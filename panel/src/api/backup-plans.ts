// Which backups are made by themselves, and which are kept.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { NewSchedule, RetentionPolicy, Schedule } from '../../../src/sdk/index.ts'
import { backupsKey } from './backups.ts'
import { client } from './client.ts'
import { shownAtOnce } from './live/optimistic.ts'

const POLL_MS = 2000
const schedulesKey = (serverId: string) => ['schedules', serverId] as const
const retentionKey = (serverId: string) => ['retention', serverId] as const

export function useSchedules(serverId: string) {
  return useQuery({
    queryKey: schedulesKey(serverId),
    queryFn: ({ signal }) => Array.fromAsync(client.backups.allSchedules(serverId, { limit: 100 }, { signal })),
    refetchInterval: POLL_MS,
  })
}

export function useScheduleActions(serverId: string) {
  const queries = useQueryClient()
  const onSettled = () => queries.invalidateQueries({ queryKey: schedulesKey(serverId) })
  return {
    /** A new one where `id` is null. */
    save: useMutation({
      mutationFn: ({ id, schedule }: { id: string | null; schedule: NewSchedule }) =>
        id === null
          ? client.backups.createSchedule(serverId, schedule)
          : client.backups.changeSchedule(serverId, id, schedule),
      onSettled,
    }),
    setEnabled: useMutation({
      mutationFn: ({ id, isEnabled }: { id: string; isEnabled: boolean }) =>
        client.backups.changeSchedule(serverId, id, { isEnabled }),
      ...shownAtOnce<Schedule[], { id: string; isEnabled: boolean }>(
        queries,
        { queryKey: schedulesKey(serverId), exact: true },
        (schedules, { id, isEnabled }) => schedules.map((each) => (each.id === id ? { ...each, isEnabled } : each)),
      ),
      onSettled,
    }),
    remove: useMutation({ mutationFn: (id: string) => client.backups.deleteSchedule(serverId, id), onSettled }),
  }
}

export function useRetention(serverId: string) {
  return useQuery({
    queryKey: retentionKey(serverId),
    queryFn: ({ signal }) => client.backups.readRetention(serverId, { signal }),
    refetchOnWindowFocus: false,
  })
}

export function useRetentionActions(serverId: string) {
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: backupsKey(serverId) })
  return {
    save: useMutation({
      mutationFn: (policy: RetentionPolicy) => client.backups.setRetention(serverId, policy),
      onSuccess: (policy) => queries.setQueryData(retentionKey(serverId), policy),
      onSettled: refresh,
    }),
    /** Resolves with what was deleted. */
    apply: useMutation({ mutationFn: () => client.backups.applyRetention(serverId, false), onSettled: refresh }),
  }
}

// The service itself: whether it can work, what went wrong lately, and what DNS holds.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { ActivityEntry, Offsite } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

const POLL_MS = 2000
const POLL_PROBLEMS_MS = 10_000
const PROBLEM_DAYS = 7
const PROBLEMS_OF_A_KIND = 20
const DAY_MS = 86_400_000

/** What went wrong, as the activity names it. */
export const PROBLEM_EVENTS = [
  'game.crashed',
  'game.over_quota',
  'backup.failed',
  'backup.damage_found',
  'backup.lost',
  'backup.offsite_failed',
  'offsite.removal_held',
  'backup.rehearsal_failed',
  'backup.restore_failed',
  'backup.restore_unfinished',
  'schedule.failed',
  'job.failed',
  'subdomain.provider_failed',
] as const satisfies readonly ActivityEntry['event'][]
export type ProblemEvent = (typeof PROBLEM_EVENTS)[number]

export function useReadiness() {
  return useQuery({
    queryKey: ['readiness'],
    queryFn: ({ signal }) => client.service.readiness({ signal }),
    refetchInterval: POLL_MS,
  })
}

/** The last week, newest first. */
export function useProblems() {
  return useQuery({
    queryKey: ['problems'],
    queryFn: async ({ signal }) => {
      const since = new Date(Date.now() - PROBLEM_DAYS * DAY_MS).toISOString()
      const pages = await Promise.all(
        PROBLEM_EVENTS.map((event) =>
          client.activity.listEverything({ event, since, limit: PROBLEMS_OF_A_KIND }, { signal }),
        ),
      )
      return pages.flatMap(({ data }) => data).sort((a, b) => b.timestamp.localeCompare(a.timestamp))
    },
    refetchInterval: POLL_PROBLEMS_MS,
  })
}

/** The disks of the machine. Needs the right to everything. */
export function useDisks(isEnabled: boolean) {
  return useQuery({
    queryKey: ['disks'],
    queryFn: async ({ signal }) => (await client.disks.read({ signal })).data,
    enabled: isEnabled,
    refetchInterval: POLL_MS,
  })
}

/** The same for every server; the service lists them by server. */
export function useZones(serverId: string | undefined) {
  return useQuery({
    queryKey: ['zones', serverId],
    queryFn: async ({ signal }) => (await client.subdomains.zones(serverId ?? '', { signal })).data,
    enabled: serverId !== undefined,
    staleTime: 60_000,
  })
}

const DNS = ['dns-check'] as const

export function useDnsCheck(isEnabled: boolean) {
  return useQuery({
    queryKey: DNS,
    queryFn: ({ signal }) => client.dns.check({}, { signal }),
    enabled: isEnabled,
    staleTime: 30_000,
  })
}

export function useDnsRepair() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: () => client.dns.check({ repair: true }),
    onSuccess: (result) => queries.setQueryData(DNS, result),
  })
}

const OFFSITE = ['offsite'] as const

export function useOffsite() {
  return useQuery({
    queryKey: OFFSITE,
    queryFn: ({ signal }) => client.offsite.read({ signal }),
    refetchInterval: POLL_MS,
  })
}

export function useOffsiteActions() {
  const queries = useQueryClient()
  const onSuccess = (state: Offsite) => queries.setQueryData(OFFSITE, state)
  return {
    /** What may be removed, as `surplus.bytes` said when somebody was asked. */
    prune: useMutation({ mutationFn: (bytes: number) => client.offsite.prune(bytes), onSuccess }),
    claim: useMutation({ mutationFn: () => client.offsite.claim(), onSuccess }),
  }
}

// The service itself: whether it can work, what went wrong lately, and what DNS holds.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import type { Offsite } from '../../../src/sdk/index.ts'
import { client } from './client.ts'
import { hasNewProblem, NEWEST, PROBLEM_EVENTS } from './live/problem-watch.ts'

const POLL_MS = 2000
/** What is older than a week goes by itself. */
const RENEW_PROBLEMS_MS = 60_000
const PROBLEMS = ['problems'] as const
const PROBLEM_DAYS = 7
const PROBLEMS_OF_A_KIND = 20
const DAY_MS = 86_400_000

export function useReadiness() {
  return useQuery({
    queryKey: ['readiness'],
    queryFn: ({ signal }) => client.service.readiness({ signal }),
    refetchInterval: POLL_MS,
  })
}

/** The last week, newest first. Each kind is a list of its own: they are read when one of the newest entries is of these. */
export function useProblems() {
  useProblemWatch()
  return useQuery({
    queryKey: PROBLEMS,
    queryFn: async ({ signal }) => {
      const since = new Date(Date.now() - PROBLEM_DAYS * DAY_MS).toISOString()
      const pages = await Promise.all(
        PROBLEM_EVENTS.map((event) =>
          client.activity.listEverything({ event, since, limit: PROBLEMS_OF_A_KIND }, { signal }),
        ),
      )
      return pages.flatMap(({ data }) => data).sort((a, b) => b.timestamp.localeCompare(a.timestamp))
    },
    refetchInterval: RENEW_PROBLEMS_MS,
  })
}

function useProblemWatch(): void {
  const queries = useQueryClient()
  const { data: newest } = useQuery({
    queryKey: ['newest-of-all'],
    queryFn: async ({ signal }) => (await client.activity.listEverything({ limit: NEWEST }, { signal })).data,
    refetchInterval: POLL_MS,
  })
  const known = useRef<string>(undefined)
  useEffect(() => {
    if (!newest) return
    if (hasNewProblem(newest, known.current)) void queries.invalidateQueries({ queryKey: PROBLEMS })
    known.current = newest[0]?.id ?? ''
  }, [newest, queries])
}

/** The disks of the machine. Needs the right to everything. */
export function useDisks(isEnabled: boolean) {
  return useQuery({
    queryKey: ['disks'],
    queryFn: async ({ signal }) => (await client.disks.read({ limit: 100 }, { signal })).data,
    enabled: isEnabled,
    refetchInterval: POLL_MS,
  })
}

/** The same for every server; the service lists them by server. */
export function useZones(serverId: string | undefined) {
  return useQuery({
    queryKey: ['zones', serverId],
    queryFn: ({ signal }) => Array.fromAsync(client.subdomains.allZones(serverId ?? '', { limit: 100 }, { signal })),
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

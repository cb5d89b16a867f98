import { useQuery } from '@tanstack/react-query'
import type { Job } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

const POLL_MS = 2000
const POLL_WORKING_MS = 600
export const jobsKey = (serverId: string) => ['jobs', serverId] as const

export const isUnderWay = ({ status }: Job) => status === 'queued' || status === 'running'

/** The newest jobs of a server, whoever started them. */
export function useJobs(serverId: string) {
  return useQuery({
    queryKey: jobsKey(serverId),
    queryFn: async ({ signal }) => (await client.jobs.list(serverId, { limit: 50 }, { signal })).data,
    refetchInterval: ({ state: { data } }) => (data?.some(isUnderWay) ? POLL_WORKING_MS : POLL_MS),
  })
}

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { NewSubdomain, Subdomain } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

const POLL_MS = 2000
const POLL_SETTLING_MS = 600
const keyOf = (serverId: string) => ['subdomains', serverId] as const
const zonesKeyOf = (serverId: string) => ['zones', serverId] as const

/** Whether something is under way that ends by itself. */
export const isSettling = ({ status, propagatedAt }: Subdomain) =>
  status === 'pending' || status === 'deleting' || (status === 'active' && propagatedAt === null)

export function useSubdomains(serverId: string) {
  return useQuery({
    queryKey: keyOf(serverId),
    queryFn: ({ signal }) => Array.fromAsync(client.subdomains.all(serverId, { limit: 100 }, { signal })),
    refetchInterval: ({ state: { data } }) => (data?.some(isSettling) ? POLL_SETTLING_MS : POLL_MS),
  })
}

export function useZones(serverId: string) {
  return useQuery({
    queryKey: zonesKeyOf(serverId),
    queryFn: ({ signal }) => Array.fromAsync(client.subdomains.allZones(serverId, { limit: 100 }, { signal })),
    staleTime: 10_000,
  })
}

export function useSubdomainActions(serverId: string) {
  const queries = useQueryClient()
  const onSettled = () => {
    void queries.invalidateQueries({ queryKey: zonesKeyOf(serverId) })
    return queries.invalidateQueries({ queryKey: keyOf(serverId) })
  }
  return {
    create: useMutation({
      mutationFn: (subdomain: NewSubdomain) => client.subdomains.create(serverId, subdomain),
      onSettled,
    }),
    remove: useMutation({ mutationFn: (id: string) => client.subdomains.delete(serverId, id), onSettled }),
  }
}

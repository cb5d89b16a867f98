import {
  type QueryClient,
  queryOptions,
  useIsMutating,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query'
import type { NewServer, PowerAction, Server } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

const ALL = ['servers'] as const
const one = (serverId: string) => ['server', serverId] as const
const POLL_MS = 2000
const POLL_CHANGING_MS = 700
const PAGE = 100
/** More than that are asked for less often, and the page says when it was. */
const MANY = 1000

const isChanging = (server: Server) =>
  server.power.state === 'starting' || server.power.state === 'stopping' || server.status !== 'ready'

export const SERVERS = queryOptions({
  queryKey: ALL,
  queryFn: async ({ signal }) => Array.fromAsync(client.servers.all({ limit: PAGE }, { signal })),
})

export function useServers() {
  return useQuery({
    ...SERVERS,
    refetchInterval: ({ state: { data } }) => {
      if (data && data.length > PAGE) return POLL_MS * Math.max(1, data.length / MANY)
      return data?.some(isChanging) ? POLL_CHANGING_MS : POLL_MS
    },
  })
}

/** Whether there are so many that the list is older than two seconds at times. */
export const isLateList = (servers: readonly unknown[]) => servers.length > MANY

/** Those that can be brought back. */
export function useDeletedServers() {
  return useQuery({
    queryKey: [...ALL, 'deleted'],
    queryFn: ({ signal }) => Array.fromAsync(client.servers.all({ limit: 100, deleted: true }, { signal })),
    refetchInterval: POLL_MS,
  })
}

export function useServer(serverId: string) {
  const queries = useQueryClient()
  return useQuery({
    queryKey: one(serverId),
    queryFn: ({ signal }) => client.servers.read(serverId, { signal }),
    refetchInterval: ({ state: { data } }) => (data && isChanging(data) ? POLL_CHANGING_MS : POLL_MS),
    // What the list knows is shown until the answer is here.
    placeholderData: () => queries.getQueryData<Server[]>(ALL)?.find(({ id }) => id === serverId),
  })
}

export const removalOf = (serverId: string) => ['removal', serverId] as const

/** Whether it is being deleted, also from when it was asked for here until the list says so. Nothing of it is asked for any more. */
export function useIsLeaving({ id, status }: Pick<Server, 'id' | 'status'>): boolean {
  const removals = useIsMutating({ mutationKey: removalOf(id) })
  return status !== 'ready' || removals > 0
}

export function usePower(serverId: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (action: PowerAction) => client.power.act(serverId, action),
    onSuccess: (server) => keepServer(queries, server),
    onSettled: () => queries.invalidateQueries({ queryKey: one(serverId) }),
  })
}

/** What the service has answered is shown at once, on this page and in the list. */
export function keepServer(queries: QueryClient, server: Server): void {
  queries.setQueryData(one(server.id), server)
  queries.setQueryData<Server[]>(ALL, (all) => all?.map((each) => (each.id === server.id ? server : each)))
}

export async function refreshServer(queries: QueryClient, serverId: string): Promise<void> {
  await Promise.all([
    queries.invalidateQueries({ queryKey: one(serverId) }),
    queries.invalidateQueries({ queryKey: ALL }),
  ])
}

export function useCreateServer() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (server: NewServer) => client.servers.create(server),
    onSuccess: (server) => {
      queries.setQueryData(one(server.id), server)
      return queries.invalidateQueries({ queryKey: ALL })
    },
  })
}

export function useTemplates() {
  return useQuery({
    queryKey: ['templates'],
    queryFn: ({ signal }) => Array.fromAsync(client.templates.all({ limit: 100 }, { signal })),
    refetchInterval: POLL_MS,
  })
}

export function useTemplate(templateId: string | null) {
  return useQuery({
    queryKey: ['template', templateId],
    queryFn: ({ signal }) => client.templates.read(templateId ?? '', { signal }),
    enabled: templateId !== null,
    refetchInterval: POLL_MS,
  })
}

/** What people call the game of a server; null where it has none, and its id until the name is here. */
export function useGameName({ game }: Pick<Server, 'game'>): string | null {
  const { data: templates } = useTemplates()
  return templates?.find(({ id }) => id === game)?.name ?? game
}

/** What a player types. */
export function addressOf(server: Server): string | null {
  if (server.port === null) return null
  const host = location.hostname.includes(':') ? `[${location.hostname}]` : location.hostname
  return `${host}:${server.port}`
}

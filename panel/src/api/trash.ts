import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { client } from './client.ts'
import { filesKey } from './files.ts'

const POLL_MS = 2000
const keyOf = (serverId: string) => ['trash', serverId] as const

export function useTrash(serverId: string) {
  const pages = useInfiniteQuery({
    queryKey: keyOf(serverId),
    queryFn: ({ signal, pageParam }) =>
      client.files.listTrash(
        serverId,
        { limit: 100, ...(pageParam === null ? {} : { cursor: pageParam }) },
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: ({ state: { data } }) => (data && data.pages.length > 1 ? false : POLL_MS),
  })
  return { ...pages, items: pages.data?.pages.flatMap((page) => page.data) }
}

export function useTrashActions(serverId: string) {
  const queries = useQueryClient()
  const onSettled = () => {
    void queries.invalidateQueries({ queryKey: filesKey(serverId) })
    return queries.invalidateQueries({ queryKey: keyOf(serverId) })
  }
  return {
    /** Resolves with the entry where it is now: its own name may be taken. */
    restore: useMutation({ mutationFn: (trashId: string) => client.files.restore(serverId, trashId), onSettled }),
    empty: useMutation({ mutationFn: () => client.files.emptyTrash(serverId, { timeoutMs: 0 }), onSettled }),
  }
}

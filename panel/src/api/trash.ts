import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import type { TrashItem } from '../../../src/sdk/index.ts'
import { client } from './client.ts'
import { filesKey } from './files.ts'
import { useRefreshWhenRecorded } from './live/newest.ts'
import { isLong, pollPages, useItemsOf } from './live/paged-list.ts'

const POLL_MS = 2000
const idOf = ({ id }: TrashItem) => id
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
    refetchInterval: pollPages(POLL_MS),
  })
  useRefreshWhenRecorded(serverId, 'file.*', keyOf(serverId), isLong(pages.data?.pages.length ?? 0))
  return { ...pages, items: useItemsOf(pages.data?.pages, idOf) }
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

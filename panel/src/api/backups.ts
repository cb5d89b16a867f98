import {
  type InfiniteData,
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query'
import type { Backup, BackupFormat, NewBackup, Page, RestoreRequest } from '../../../src/sdk/index.ts'
import { saveFrom } from '../components/save-file.ts'
import { client } from './client.ts'
import { jobsKey } from './jobs.ts'
import { useRefreshWhenRecorded } from './live/newest.ts'
import { shownAtOnce } from './live/optimistic.ts'
import { isLong, pollAfter, pollPages, useItemsOf } from './live/paged-list.ts'

const POLL_MS = 2000
const POLL_WORKING_MS = 600
const ALL_LIMIT = 100
const idOf = ({ id }: Backup) => id
export const backupsKey = (serverId: string) => ['backups', serverId] as const

export const isWorking = ({ status }: Backup) => status === 'queued' || status === 'running'
/** Its files can be looked at and brought back, those that are damaged excepted. */
export const isCompleted = ({ status }: Backup) => status === 'completed'

export function useBackups(serverId: string) {
  const pages = useInfiniteQuery({
    queryKey: backupsKey(serverId),
    queryFn: ({ signal, pageParam }) =>
      client.backups.list(serverId, { limit: 50, ...(pageParam === null ? {} : { cursor: pageParam }) }, { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: (query) => {
      const isAnyWorking = query.state.data?.pages.some((page) => page.data.some(isWorking))
      return pollPages(isAnyWorking ? POLL_WORKING_MS : POLL_MS)(query)
    },
  })
  useRefreshWhenRecorded(serverId, 'backup.*', backupsKey(serverId), isLong(pages.data?.pages.length ?? 0))
  return { ...pages, backups: useItemsOf(pages.data?.pages, idOf) }
}

/** Every backup, for what has to know them all. */
export function useAllBackups(serverId: string) {
  const all = useQuery({
    queryKey: [...backupsKey(serverId), 'all'],
    queryFn: ({ signal }) => Array.fromAsync(client.backups.all(serverId, { limit: ALL_LIMIT }, { signal })),
    refetchInterval: ({ state: { data } }) => pollAfter(POLL_MS, (data?.length ?? 0) / ALL_LIMIT),
  })
  useRefreshWhenRecorded(serverId, 'backup.*', backupsKey(serverId), isLong((all.data?.length ?? 0) / ALL_LIMIT))
  return all
}

export function useBackup(serverId: string, backupId: string) {
  return useQuery({
    queryKey: [...backupsKey(serverId), backupId],
    queryFn: ({ signal }) => client.backups.read(serverId, backupId, { signal }),
    refetchInterval: POLL_MS,
  })
}

/** What one with these patterns would hold and leave out, of the files as they are. The last count stays until the next is there. */
export function useBackupPreview(serverId: string, ignored: string) {
  return useQuery({
    queryKey: ['backup-preview', serverId, ignored],
    queryFn: ({ signal }) => client.backups.preview(serverId, ignored, { signal }),
    placeholderData: keepPreviousData,
    staleTime: 0,
    gcTime: 0,
  })
}

/** What the last rehearsal wrote to its console. */
export function useRehearsal(serverId: string, backup: Backup) {
  return useQuery({
    queryKey: [...backupsKey(serverId), backup.id, 'rehearsal', backup.rehearsal?.at],
    queryFn: ({ signal }) => client.backups.rehearsal(serverId, backup.id, { signal }),
    enabled: backup.rehearsal !== null,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

/** What changes one backup or makes one; the list is asked for again at once. */
export function useBackupActions(serverId: string) {
  const queries = useQueryClient()
  const onSettled = () => {
    void queries.invalidateQueries({ queryKey: jobsKey(serverId) })
    return queries.invalidateQueries({ queryKey: backupsKey(serverId) })
  }
  return {
    create: useMutation({ mutationFn: (backup: NewBackup) => client.backups.create(serverId, backup), onSettled }),
    setLocked: useMutation({
      mutationFn: ({ id, isLocked }: { id: string; isLocked: boolean }) =>
        isLocked ? client.backups.lock(serverId, id) : client.backups.unlock(serverId, id),
      ...shownAtOnce<InfiniteData<Page<Backup>>, { id: string; isLocked: boolean }>(
        queries,
        { queryKey: backupsKey(serverId), exact: true },
        (list, { id, isLocked }) => ({
          ...list,
          pages: list.pages.map((page) => ({
            ...page,
            data: page.data.map((backup) => (backup.id === id ? { ...backup, isLocked } : backup)),
          })),
        }),
      ),
      onSettled,
    }),
    remove: useMutation({ mutationFn: (id: string) => client.backups.delete(serverId, id), onSettled }),
    /** Resolves with the job that restores it. */
    restore: useMutation({
      mutationFn: ({ id, ...request }: RestoreRequest & { id: string }) =>
        client.backups.restore(serverId, id, request),
      onSettled,
    }),
    finishRestore: useMutation({
      mutationFn: (direction: 'forward' | 'back') => client.backups.finishRestore(serverId, direction),
      onSettled,
    }),
    download: useMutation({
      mutationFn: async ({ id, format }: { id: string; format: BackupFormat }) => {
        const { url } = await client.backups.requestDownload(serverId, id, format)
        saveFrom(url)
      },
    }),
  }
}

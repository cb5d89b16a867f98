import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import type { Backup, NewBackup, RestoreRequest } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

const POLL_MS = 2000
const POLL_WORKING_MS = 600
const keyOf = (serverId: string) => ['backups', serverId] as const

export const isWorking = ({ status }: Backup) => status === 'queued' || status === 'running'

export function useBackups(serverId: string) {
  return useInfiniteQuery({
    queryKey: keyOf(serverId),
    queryFn: ({ signal, pageParam }) =>
      client.backups.list(serverId, { limit: 50, ...(pageParam === null ? {} : { cursor: pageParam }) }, { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: ({ state: { data } }) =>
      data?.pages.some((page) => page.data.some(isWorking)) ? POLL_WORKING_MS : POLL_MS,
  })
}

/** What changes one backup or makes one; the list is asked for again at once. */
export function useBackupActions(serverId: string) {
  const queries = useQueryClient()
  const onSettled = () => queries.invalidateQueries({ queryKey: keyOf(serverId) })
  return {
    create: useMutation({ mutationFn: (backup: NewBackup) => client.backups.create(serverId, backup), onSettled }),
    setLocked: useMutation({
      mutationFn: ({ id, isLocked }: { id: string; isLocked: boolean }) =>
        isLocked ? client.backups.lock(serverId, id) : client.backups.unlock(serverId, id),
      onSettled,
    }),
    remove: useMutation({ mutationFn: (id: string) => client.backups.delete(serverId, id), onSettled }),
    verify: useMutation({
      mutationFn: async (id: string) => {
        const job = await client.backups.verify(serverId, id)
        return client.jobs.wait(serverId, job.id)
      },
      onSettled,
    }),
    /** Resolves once everything is back. */
    restore: useMutation({
      mutationFn: async ({ id, ...request }: RestoreRequest & { id: string }) => {
        const job = await client.backups.restore(serverId, id, request)
        return client.jobs.wait(serverId, job.id)
      },
      onSettled,
    }),
    download: useMutation({
      mutationFn: async (id: string) => {
        const { url } = await client.backups.requestDownload(serverId, id, 'tar.gz')
        location.assign(url)
      },
    }),
  }
}

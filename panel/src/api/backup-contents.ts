// What is inside backups, and between them.
import { useLingui } from '@lingui/react/macro'
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import type { BackupChange } from '../../../src/sdk/index.ts'
import { saveFile } from '../components/save-file.ts'
import { showFailure } from '../components/toasts.tsx'
import { client } from './client.ts'

/** A backup never changes, so what was read of it stays true. */
const FOREVER = { staleTime: Number.POSITIVE_INFINITY, refetchOnWindowFocus: false } as const
const FIRST = { initialPageParam: null as string | null }
const pageOf = (cursor: string | null, limit = 100) => ({ limit, ...(cursor === null ? {} : { cursor }) })

export function useBackupFolder(serverId: string, backupId: string, path: string) {
  return useInfiniteQuery({
    ...FOREVER,
    ...FIRST,
    queryKey: ['backup-folder', serverId, backupId, path],
    queryFn: ({ signal, pageParam }) =>
      client.backups.browse(serverId, backupId, { path, ...pageOf(pageParam) }, { signal }),
    getNextPageParam: ({ nextCursor }) => nextCursor,
  })
}

/** Without `to` with the files as they are now. */
export function useComparison(serverId: string, from: string, to: string | null) {
  return useInfiniteQuery({
    ...FIRST,
    queryKey: ['comparison', serverId, from, to],
    queryFn: ({ signal, pageParam }) =>
      client.backups.compare(serverId, { from, ...(to === null ? {} : { to }), ...pageOf(pageParam) }, { signal }),
    getNextPageParam: ({ nextCursor }) => nextCursor,
    enabled: from !== '',
  })
}

export interface RestoreEffect {
  /** Are gone by now, or were changed, and come back. */
  returning: number
  changing: number
  /** Were made since. */
  newer: number
  /** There is more than was counted. */
  isPartial: boolean
}

const COUNTED_AT_MOST = 2000

/** What a restore would do to the files as they are now. `paths` null: all of them. */
export function useRestoreEffect(serverId: string, backupId: string, paths: readonly string[] | null) {
  return useQuery({
    queryKey: ['restore-effect', serverId, backupId, paths],
    queryFn: async ({ signal }): Promise<RestoreEffect> => {
      const counts = { added: 0, removed: 0, changed: 0 }
      let seen = 0
      for await (const change of client.backups.compareAll(serverId, { from: backupId, limit: 100 }, { signal })) {
        if (++seen > COUNTED_AT_MOST) break
        if (change.kind !== 'directory' && isBelow(change, paths)) counts[change.change]++
      }
      const { added: newer, removed: returning, changed: changing } = counts
      return { newer, returning, changing, isPartial: seen > COUNTED_AT_MOST }
    },
    gcTime: 0,
    refetchOnWindowFocus: false,
  })
}

const isBelow = ({ path }: BackupChange, paths: readonly string[] | null) =>
  paths === null || paths.some((each) => path === each || path.startsWith(`${each}/`))

export function useFileVersions(serverId: string, path: string) {
  return useQuery({
    queryKey: ['versions', serverId, path],
    queryFn: ({ signal }) => Array.fromAsync(client.backups.allVersions(serverId, { path, limit: 100 }, { signal })),
  })
}

/** A file of a backup, for the browser to keep: it puts large ones on its disk, not into memory. */
export function useSaveBackupFile(serverId: string, backupId: string) {
  const { t } = useLingui()
  return useMutation({
    mutationFn: async ({ path, name }: { path: string; name: string }) => {
      const { bytes } = await client.backups.readFile(serverId, backupId, path, { timeoutMs: 0 })
      saveFile(name, await new Response(bytes).blob())
    },
    onError: (error, { name }) => showFailure(t`${name} could not be downloaded`, error),
  })
}

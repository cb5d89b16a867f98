import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import type { FileEntry, Page } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

export interface FileOrder {
  sort: 'name' | 'size' | 'time'
  order: 'asc' | 'desc'
}

const POLL_MS = 2000
const keyOf = (serverId: string) => ['files', serverId] as const
export const joinPath = (directory: string, name: string) => `${directory === '/' ? '' : directory}/${name}`

/** Directories first, a page at a time; a folder that fits into one page is kept up to date. */
export function useDirectory(serverId: string, path: string, order: FileOrder) {
  return useInfiniteQuery({
    queryKey: [...keyOf(serverId), path, order],
    queryFn: ({ signal, pageParam }) =>
      client.files.list(
        serverId,
        { path, ...order, limit: 100, ...(pageParam === null ? {} : { cursor: pageParam }) },
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }: Page<FileEntry>) => nextCursor,
    refetchInterval: ({ state: { data } }) => (data && data.pages.length > 1 ? false : POLL_MS),
    placeholderData: (before, query) => (query?.queryKey[2] === path ? before : undefined),
  })
}

export function useFileActions(serverId: string) {
  const queries = useQueryClient()
  const onSettled = () => queries.invalidateQueries({ queryKey: keyOf(serverId) })
  return {
    refresh: onSettled,
    makeFolder: useMutation({
      mutationFn: ({ path, name }: { path: string; name: string }) => client.files.makeFolder(serverId, { path, name }),
      onSettled,
    }),
    rename: useMutation({
      mutationFn: ({ directory, from, to }: { directory: string; from: string; to: string }) =>
        client.files.move(serverId, { moves: [{ from: joinPath(directory, from), to: joinPath(directory, to) }] }),
      onSettled,
    }),
    remove: useMutation({
      mutationFn: ({ directory, names }: { directory: string; names: string[] }) =>
        client.files.delete(serverId, { root: directory, files: names }),
      onSettled,
    }),
    undelete: useMutation({
      mutationFn: ({ directory, names }: { directory: string; names: string[] }) =>
        putBack(serverId, new Set(names.map((name) => joinPath(directory, name)))),
      onSettled,
    }),
    copy: useMutation({
      mutationFn: (location: string) => client.files.copy(serverId, { location }),
      onSettled,
    }),
    download: useMutation({
      mutationFn: async (entry: FileEntry) => {
        const { url } = await client.files.requestDownload(serverId, { path: entry.path })
        location.assign(url)
      },
    }),
  }
}

/** The newest deletion of each path. What was deleted a moment ago is at the beginning of the trash. */
async function putBack(serverId: string, paths: Set<string>): Promise<void> {
  for await (const item of client.files.allTrash(serverId, { limit: 100 })) {
    if (item.reason !== 'deleted' || !paths.delete(item.path)) continue
    await client.files.restore(serverId, item.id)
    if (paths.size === 0) return
  }
}

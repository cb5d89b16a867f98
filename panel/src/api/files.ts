import {
  type InfiniteData,
  type QueryClient,
  type QueryKey,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query'
import type { RefObject } from 'react'
import { type ArchiveFormat, type FileEntry, isApiError, type Page } from '../../../src/sdk/index.ts'
import { saveFrom } from '../components/save-file.ts'
import { client } from './client.ts'
import { jobsKey } from './jobs.ts'
import { shownAtOnce } from './live/optimistic.ts'
import { pollPages, useItemsOf } from './live/paged-list.ts'
import { readInSight, type Sight } from './live/pages-in-sight.ts'

export interface FileOrder {
  sort: 'name' | 'size' | 'time'
  order: 'asc' | 'desc'
}

export interface Move {
  from: string
  to: string
}

const POLL_MS = 2000
/** So many times as long as it takes. */
const RESTS_FOR = 2
const nameOf = ({ name }: FileEntry) => name
export const filesKey = (serverId: string) => ['files', serverId] as const
const foldersKey = (serverId: string) => [...filesKey(serverId), 'folder'] as const
export const joinPath = (directory: string, name: string) => `${directory === '/' ? '' : directory}/${name}`

/** Directories first, a page at a time. What is in sight is kept up to date, the rest when it comes into sight; null: all of it. */
export function useDirectory(serverId: string, path: string, order: FileOrder, sight: RefObject<Sight> | null) {
  const queryKey = [...foldersKey(serverId), path, order]
  const read = (cursor: string | null, signal: AbortSignal) =>
    client.files.list(serverId, { path, ...order, limit: 100, ...(cursor === null ? {} : { cursor }) }, { signal })
  const pages = useInfiniteQuery({
    queryKey,
    queryFn: ({ signal, pageParam }) => read(pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }: Page<FileEntry>) => nextCursor,
    refetchInterval: (query) => (sight === null || isOnePage(query.state.data) ? pollPages(POLL_MS)(query) : false),
    placeholderData: (before, query) => (query?.queryKey[3] === path ? before : undefined),
  })
  usePagesInSight(queryKey, !isOnePage(pages.data), sight, read)
  return { ...pages, entries: useItemsOf(pages.data?.pages, nameOf) }
}

type Folder = InfiniteData<Page<FileEntry>, string | null>
const isOnePage = (folder: { pages: readonly unknown[] } | undefined) => (folder?.pages.length ?? 1) === 1

function usePagesInSight(
  queryKey: QueryKey,
  isWanted: boolean,
  sight: RefObject<Sight> | null,
  read: (cursor: string | null, signal: AbortSignal) => Promise<Page<FileEntry>>,
): void {
  const queries = useQueryClient()
  /** Where the folder is gone, its list says so. */
  const toldByList = (error: unknown): never => {
    if (isApiError(error)) void queries.invalidateQueries({ queryKey })
    throw error
  }
  useQuery({
    queryKey: ['in-sight', ...queryKey],
    queryFn: async ({ signal }) => {
      const startedAt = performance.now()
      const shown = queries.getQueryData<Folder>(queryKey)
      const now =
        shown && sight && (await readInSight(shown, sight.current, (cursor) => read(cursor, signal)).catch(toldByList))
      // Whatever was put there meanwhile is newer.
      if (now && now !== shown && queries.getQueryData(queryKey) === shown) queries.setQueryData(queryKey, now)
      return performance.now() - startedAt
    },
    enabled: isWanted && sight !== null,
    // A folder of so many entries that it takes the service long is asked for less often.
    refetchInterval: ({ state: { data: tookMs = 0 } }) => Math.max(POLL_MS, tookMs * RESTS_FOR),
  })
}

export function useUsage(serverId: string) {
  return useQuery({
    queryKey: [...filesKey(serverId), 'usage'],
    queryFn: ({ signal }) => client.files.usage(serverId, { signal }),
  })
}

export function useFileActions(serverId: string) {
  const queries = useQueryClient()
  const onSettled = () => {
    void queries.invalidateQueries({ queryKey: ['trash', serverId] })
    return queries.invalidateQueries({ queryKey: filesKey(serverId) })
  }
  return {
    refresh: onSettled,
    makeFolder: useMutation({
      mutationFn: ({ path, name }: { path: string; name: string }) => client.files.makeFolder(serverId, { path, name }),
      onSettled,
    }),
    /** Empty, and never in the place of another. */
    makeFile: useMutation({
      mutationFn: (path: string) => client.files.write(serverId, path, '', { overwrite: false }),
      onSettled,
    }),
    /** All of them, or none. */
    move: useMutation({
      mutationFn: (moves: Move[]) => client.files.move(serverId, { moves }),
      ...entriesAtOnce<Move[]>(queries, serverId, movedEntry),
      onSettled,
    }),
    setMode: useMutation({
      mutationFn: ({ directory, names, mode }: { directory: string; names: string[]; mode: string }) =>
        client.files.setMode(serverId, { root: directory, files: names, mode }),
      onSettled,
    }),
    remove: useMutation({
      mutationFn: ({ directory, names }: { directory: string; names: string[] }) =>
        client.files.delete(serverId, { root: directory, files: names }),
      ...entriesAtOnce<{ directory: string; names: string[] }>(queries, serverId, (entry, { directory, names }) =>
        names.some((name) => joinPath(directory, name) === entry.path) ? null : entry,
      ),
      onSettled,
    }),
    undelete: useMutation({
      mutationFn: ({ directory, names }: { directory: string; names: string[] }) =>
        putBack(serverId, new Set(names.map((name) => joinPath(directory, name)))),
      onSettled,
    }),
    /** Each beside its original, one after another. */
    copy: useMutation({
      mutationFn: async (paths: readonly string[]) => {
        for (const location of paths) await client.files.copy(serverId, { location }, { timeoutMs: 0 })
      },
      onSettled,
    }),
    download: useMutation({
      mutationFn: async (path: string) => {
        const { url } = await client.files.requestDownload(serverId, { path })
        saveFrom(url)
      },
    }),
  }
}

/** Work that goes on as a job, with which each of these resolves. */
export function useFileJobs(serverId: string) {
  const queries = useQueryClient()
  const onSettled = () => queries.invalidateQueries({ queryKey: jobsKey(serverId) })
  return {
    pack: useMutation({
      mutationFn: (request: { root: string; files: string[]; format: ArchiveFormat; target: string }) =>
        client.files.pack(serverId, request),
      onSettled,
    }),
    unpack: useMutation({
      mutationFn: (request: { path: string; directory: string; overwrite: boolean }) =>
        client.files.unpack(serverId, request),
      onSettled,
    }),
    pull: useMutation({
      mutationFn: (request: { url: string; directory: string; name?: string }) => client.files.pull(serverId, request),
      onSettled,
    }),
  }
}

/** In the lists of folders that are here. `change` answers null for an entry that goes. */
function entriesAtOnce<Variables>(
  queries: QueryClient,
  serverId: string,
  change: (entry: FileEntry, variables: Variables) => FileEntry | null,
) {
  return shownAtOnce<InfiniteData<Page<FileEntry>>, Variables>(
    queries,
    { queryKey: foldersKey(serverId) },
    (folder, variables) => ({
      ...folder,
      pages: folder.pages.map((page) => ({
        ...page,
        data: page.data.map((entry) => change(entry, variables)).filter((entry) => entry !== null),
      })),
    }),
  )
}

/** Within its folder it has another name; out of it, it is gone from there. */
function movedEntry(entry: FileEntry, moves: readonly Move[]): FileEntry | null {
  const to = moves.find(({ from }) => from === entry.path)?.to
  if (to === undefined) return entry
  const folder = entry.path.slice(0, entry.path.lastIndexOf('/') + 1)
  const name = to.slice(to.lastIndexOf('/') + 1)
  return to === folder + name ? { ...entry, name, path: to } : null
}

/** The newest deletion of each path. What was deleted a moment ago is at the beginning of the trash. */
async function putBack(serverId: string, paths: Set<string>): Promise<void> {
  for await (const item of client.files.allTrash(serverId, { limit: 100 })) {
    if (item.reason !== 'deleted' || !paths.delete(item.path)) continue
    await client.files.restore(serverId, item.id)
    if (paths.size === 0) return
  }
}

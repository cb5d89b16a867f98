// Reads whose cost grows with a tenant's data: lists, pages of the trash, searches. Small ones run at once; the rest go
// to the reader thread, where each server has its share.
import type {
  FileEntry,
  ListPosition,
  ListRequest,
  SearchMatch,
  TrashItem,
} from '../../../contract/agent/agent-files.ts'
import { PAGES_BEING_READ, SEARCHES } from '../../../contract/fixed-limits.ts'
import { createShares } from '../../fair-shares.ts'
import type { ServerFiles } from '../server-files.ts'
import { listTrash } from '../trash/trash-page.ts'
import { list } from './list.ts'
import { createReaderThread, inOneTurn } from './reader-thread.ts'
import type { SearchRequest } from './search.ts'

export interface Readings {
  list(
    server: ServerFiles,
    request: Omit<ListRequest, 'serverId'>,
  ): Promise<{ entries: FileEntry[]; next: ListPosition | null }>
  listTrash(
    server: ServerFiles,
    page: { limit: number; after: string | null },
  ): Promise<{ items: TrashItem[]; next: string | null }>
  /** Ends with its signal, also while it waits. */
  search(
    server: ServerFiles,
    request: Omit<SearchRequest, 'signal'>,
    signal: AbortSignal,
  ): Promise<{ matches: SearchMatch[]; isComplete: boolean }>
  close(): Promise<void>
}

export function createReadings({ trashKeepMs, stopping }: { trashKeepMs: number; stopping: AbortSignal }): Readings {
  const searches = createShares(SEARCHES)
  const pages = createShares(PAGES_BEING_READ)
  const reader = createReaderThread()
  return {
    list: ({ serverId, files, folders }, request) =>
      pages.run(serverId, stopping, () =>
        inOneTurn(
          files.share,
          (turn) => list(files, request, turn),
          () => reader.read({ kind: 'list', folder: folders.files, request }, stopping),
        ),
      ),
    listTrash({ serverId, files, folders }, page) {
      const request = { folder: folders.trash, keepMs: trashKeepMs, ...page }
      return pages.run(serverId, stopping, () =>
        inOneTurn(
          files.share,
          (turn) => listTrash(request, turn),
          () => reader.read({ kind: 'trash', ...request }, stopping),
        ),
      )
    },
    search: ({ serverId, folders }, request, signal) =>
      searches.run(serverId, signal, () => reader.read({ kind: 'search', folder: folders.files, request }, signal)),
    close: reader.close,
  }
}

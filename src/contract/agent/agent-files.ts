// The part of the Agent port that deals with a server's files. Paths are text such as "/a/b", "/" being the top; a name
// on disk that is not valid UTF-8 is carried as docs/files.md says. Bytes of files never cross this port.
import type { ChangeOrigin } from '../agent.ts'
import type { ArchiveFormat, DiskUsage, FileEntry, SearchMatch, TrashItem } from '../files/files.ts'

export type { ArchiveFormat, DiskUsage, FileEntry, FileKind, SearchMatch, TrashItem } from '../files/files.ts'

export type ListSort = 'name' | 'size' | 'time'

/** Where a page ended: the next one starts after it, whatever has come or gone meanwhile. */
export interface ListPosition {
  isDirectory: boolean
  /** The size in bytes or the time in nanoseconds, as decimal digits; 0 when sorted by name. */
  key: string
  name: string
}

/** For what does the same when it is repeated, which may go without a name. */
export interface RepeatableRequest {
  serverId: string
  requestId?: string
  /** Nobody but the system itself by default. */
  origin?: ChangeOrigin
}

export interface ChangeRequest extends RepeatableRequest {
  /** What names the request, the same again when it is repeated. */
  requestId: string
}

export interface ListRequest {
  serverId: string
  path: string
  sort?: ListSort
  descending?: boolean
  limit?: number
  after?: ListPosition | null
}

/**
 * Every call names its server. A call that changes something has a `requestId`: the same id gives the same answer
 * again for ten minutes, and, while its fact is not forgotten, also after a crash. `AgentFacts.find` has the fact by then.
 */
export interface AgentFiles {
  list(request: ListRequest): Promise<{ entries: FileEntry[]; next: ListPosition | null }>
  stat(request: { serverId: string; path: string }): Promise<FileEntry>
  /** Makes missing parents. `created` is false when the directory was there. Must be idempotent. */
  makeFolder(
    request: RepeatableRequest & { path: string; name: string },
  ): Promise<{ entry: FileEntry; created: boolean }>
  copy(request: ChangeRequest & { location: string }): Promise<FileEntry>
  /** Ends a copy under way, which then fails and leaves nothing. Must be idempotent. */
  cancelCopy(request: { serverId: string; requestId: string }): Promise<void>
  /** Checks every entry before it touches any. What is removed can be had back from the trash. */
  remove(request: ChangeRequest & { root: string; files: string[] }): Promise<{ deleted: string[]; missing: string[] }>
  /** Checks every move before it makes any. With `overwrite`, what was there goes to the trash. */
  move(
    request: ChangeRequest & { moves: { from: string; to: string }[]; overwrite?: boolean },
  ): Promise<{ data: FileEntry[] }>
  /** Checks every entry before it changes any. `mode` has the nine permission bits only. Must be idempotent. */
  setMode(request: ChangeRequest & { root: string; files: string[]; mode: number }): Promise<{ data: FileEntry[] }>
  /**
   * Names that hold the text and, when asked, lines of text files that do; letter case does not count. Refused with
   * `rate_limited` while too many wait. The signal, which travels as a connection that is closed, ends it.
   */
  search(
    request: { serverId: string; path?: string; query: string; content?: boolean; limit?: number },
    signal?: AbortSignal,
  ): Promise<{ matches: SearchMatch[]; isComplete: boolean }>
  /** Newest first; `after` is the id of the last item of the page before. */
  listTrash(request: {
    serverId: string
    limit?: number
    after?: string | null
  }): Promise<{ items: TrashItem[]; next: string | null }>
  /** Puts an item back where it was, under a free name when its own is taken. */
  restoreTrash(request: ChangeRequest & { trashId: string }): Promise<FileEntry>
  /** Frees the space of everything in the trash now. Must be idempotent. */
  emptyTrash(request: RepeatableRequest): Promise<{ freedBytes: number }>
  usage(request: { serverId: string }): Promise<DiskUsage>
  /** Null for no limit. Kept on the agent's disk. Must be idempotent. */
  setQuota(request: { serverId: string; quotaBytes: number | null; maxEntries: number | null }): Promise<void>
}

/** Work for `AgentTasks`. */
export type FilesWork =
  | { kind: 'files.pack'; root: string; files: string[]; format: ArchiveFormat; target?: string }
  | { kind: 'files.unpack'; path: string; directory: string; overwrite?: boolean }
  /** `sha256`, in hex, is what the bytes must have: others are never in place. */
  | { kind: 'files.pull'; url: string; directory: string; name?: string; overwrite?: boolean; sha256?: string }

/** The archive, the directory that was unpacked into, or the file. */
export type FilesResults = Record<FilesWork['kind'], FileEntry>

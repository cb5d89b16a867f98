import type { ChangeRequest } from '../../contract/agent/agent-files.ts'
import type { Agent, AgentFact } from '../../contract/agent.ts'
import { fail } from '../../contract/errors.ts'
import type {
  ArchiveFormat,
  DiskUsage,
  DownloadLocation,
  FileEntry,
  TrashItem,
  UploadLocation,
} from '../../contract/files/files.ts'
import { BASE_PATH } from '../../contract/operation.ts'
import type { Page } from '../../contract/schema.ts'
import type { LinkDetails, LinkPurpose, SignedLinks } from '../../http/signed-links.ts'
import { newId } from '../../kit/ids.ts'
import { iso } from '../../kit/time.ts'
import type { Db } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, originOf } from '../http/actor.ts'
import { grantOf, LINK_LIFE_MS, linkEnd } from '../http/link-grant.ts'
import { type Cursors, pageRequest } from '../http/paging.ts'
import { requireReadyServer, requireServerFiles } from '../servers/service.ts'

export interface FileDeps {
  db: Db
  agent: Pick<Agent, 'files' | 'facts'>
  /** Records the result of a request; where it cannot now, it is done later. */
  facts: { record(actor: Actor, fact: AgentFact): Promise<void> }
  links: SignedLinks
  cursors: Cursors
  clock: { now(): number }
  maxUploadBytes: number
}

export type Files = ReturnType<typeof createFiles>

export function createFiles(deps: FileDeps) {
  const { db, agent, links, cursors, clock } = deps
  const files = agent.files

  /**
   * From its first moment on the agent's disk a change has its fact there, so it is answered as done also when the
   * database cannot take the entry now: whoever reads the agent's facts records it, and the answer, later.
   */
  async function change<T>(actor: Actor, serverId: string, work: (request: ChangeRequest) => Promise<T>): Promise<T> {
    await requireReadyServer(db, actor, serverId)
    const request = { serverId, requestId: requestKey(actor), origin: originOf(actor) }
    const answer = await work(request)
    const fact = await agent.facts.find(request)
    if (fact) await deps.facts.record(actor, fact)
    else if (actor.remember) await transact(db, actor, async () => answer)
    return answer
  }

  async function signedUrl<P extends LinkPurpose>(
    { actor, baseUrl }: { actor: Actor; baseUrl: string },
    serverId: string,
    purpose: P,
    door: string,
    detail: LinkDetails[P],
  ) {
    const link = await links.sign(purpose, grantOf<P>(actor, serverId, detail), LINK_LIFE_MS)
    return {
      url: `${baseUrl}${BASE_PATH}/${door}/${link}`,
      expiresAt: iso(linkEnd(actor, clock.now())),
    }
  }

  return {
    remove: (actor: Actor, serverId: string, { root = '/', files: names }: { root?: string; files: string[] }) =>
      change(actor, serverId, (request) => files.remove({ ...request, root, files: names })),

    makeFolder: (actor: Actor, serverId: string, { name, path = '/' }: { name: string; path?: string }) =>
      change(actor, serverId, (request) => files.makeFolder({ ...request, path, name })),

    async copy(actor: Actor, serverId: string, location: string, gone: AbortSignal): Promise<FileEntry> {
      const requestId = requestKey(actor)
      const cancel = () => void files.cancelCopy({ serverId, requestId }).catch(() => {})
      gone.addEventListener('abort', cancel, { once: true })
      try {
        return await change(actor, serverId, (request) => files.copy({ ...request, location }))
      } finally {
        gone.removeEventListener('abort', cancel)
      }
    },

    move: (
      actor: Actor,
      serverId: string,
      { moves, overwrite = false }: { moves: { from: string; to: string }[]; overwrite?: boolean },
    ) => change(actor, serverId, (request) => files.move({ ...request, moves, overwrite })),

    setMode: (
      actor: Actor,
      serverId: string,
      { root = '/', files: names, mode }: { root?: string; files: string[]; mode: string },
    ) =>
      change(actor, serverId, (request) =>
        files.setMode({ ...request, root, files: names, mode: Number.parseInt(mode, 8) }),
      ),

    async requestUpload(actor: Actor, serverId: string, baseUrl: string): Promise<UploadLocation> {
      const server = await requireReadyServer(db, actor, serverId)
      const id = newId('upl', clock.now())
      const maxBytes = Math.min(deps.maxUploadBytes, server.limit_disk_bytes ?? Number.MAX_SAFE_INTEGER)
      const { url, expiresAt } = await signedUrl({ actor, baseUrl }, serverId, 'upload', 'uploads', {
        uploadId: id,
        maxBytes,
      })
      return { id, url, expiresAt, maxBytes, protocols: ['multipart', 'tus'] }
    },

    async requestDownload(
      actor: Actor,
      serverId: string,
      baseUrl: string,
      path: string,
      format?: ArchiveFormat,
    ): Promise<DownloadLocation> {
      await requireServerFiles(db, actor, serverId)
      const entry = await files.stat({ serverId, path })
      const chosen = format ?? (entry.kind === 'directory' ? 'zip' : 'raw')
      return signedUrl({ actor, baseUrl }, serverId, 'download', 'downloads', { path, format: chosen })
    },

    /** A link for a request that is already here and goes to the agent in the caller's name. */
    async linkForContent<P extends 'read-content' | 'write-content'>(
      actor: Actor,
      serverId: string,
      purpose: P,
      detail: LinkDetails[P],
    ): Promise<string> {
      if (purpose === 'write-content') await requireReadyServer(db, actor, serverId)
      else await requireServerFiles(db, actor, serverId)
      const grant = { ...grantOf<P>(actor, serverId, detail), source: actor.source }
      return links.sign(purpose, grant, LINK_LIFE_MS)
    },

    async list(actor: Actor, serverId: string, query: ListQuery): Promise<Page<FileEntry>> {
      await requireServerFiles(db, actor, serverId)
      const { path = '/', sort = 'name', order = 'asc' } = query
      const listName = `files ${serverId} ${sort} ${order} ${path}`
      const request = pageRequest(cursors, listName, query)
      const [isDirectory, key, name] = request.after ?? []
      const after = request.after ? { isDirectory: isDirectory === 1, key: String(key), name: String(name) } : null
      const { entries, next } = await files.list({
        serverId,
        path,
        sort,
        descending: order === 'desc',
        limit: request.limit,
        after,
      })
      const nextCursor = next && cursors.encode(listName, [next.isDirectory ? 1 : 0, next.key, next.name])
      return { data: entries, nextCursor }
    },

    async search(
      actor: Actor,
      serverId: string,
      query: { q: string; path?: string; content?: boolean; limit?: number },
      signal: AbortSignal,
    ) {
      await requireServerFiles(db, actor, serverId)
      const { q, path = '/', content = false, limit = 50 } = query
      const { matches, isComplete } = await files.search({ serverId, path, query: q, content, limit }, signal)
      return { data: matches, isComplete }
    },

    async listTrash(
      actor: Actor,
      serverId: string,
      query: { limit?: number; cursor?: string },
    ): Promise<Page<TrashItem>> {
      await requireServerFiles(db, actor, serverId)
      const listName = `trash ${serverId}`
      const request = pageRequest(cursors, listName, query)
      const after = request.after ? String(request.after[0]) : null
      const { items, next } = await files.listTrash({ serverId, limit: request.limit, after })
      return { data: items, nextCursor: next === null ? null : cursors.encode(listName, [next]) }
    },

    restore: (actor: Actor, serverId: string, trashId: string) =>
      change(actor, serverId, (request) => files.restoreTrash({ ...request, trashId })),

    emptyTrash: (actor: Actor, serverId: string) => change(actor, serverId, (request) => files.emptyTrash(request)),

    async usage(actor: Actor, serverId: string): Promise<DiskUsage> {
      await requireServerFiles(db, actor, serverId)
      return files.usage({ serverId })
    },
  }
}

export interface ListQuery {
  limit?: number
  cursor?: string
  path?: string
  sort?: 'name' | 'size' | 'time'
  order?: 'asc' | 'desc'
}

/** What makes a repetition of a request known to the agent. */
function requestKey(actor: Actor): string {
  if (actor.requestId === null) throw fail('internal')
  return actor.idempotencyKey ? `${actor.id} ${actor.idempotencyKey}` : actor.requestId
}

// The agent's side of files: the port that control calls, and what the agent's own HTTP routes, backups and tasks use.
import { readdirSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import type { AgentFiles } from '../../contract/agent-files.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import { hasCode } from '../../kit/errno.ts'
import type { Layout } from '../layout.ts'
import type { TaskHandler } from '../tasks.ts'
import { type PackWork, pack } from './archives/pack.ts'
import { type UnpackWork, unpack } from './archives/unpack.ts'
import { copy } from './copy.ts'
import { fsyncDirectory, mkdirAt, statsIfThere } from './directory.ts'
import { createDisks, type TrashOnDisk } from './disk.ts'
import { describeAt, describePath } from './entries.ts'
import { explained } from './errors.ts'
import { list } from './list.ts'
import { move } from './move.ts'
import { checkNewName, parseEntry, parsePath } from './paths.ts'
import { PULL_OPTIONS, type PullOptions, type PullWork, pull } from './pull.ts'
import { remove } from './remove.ts'
import { createRepeats } from './repeats.ts'
import { search } from './search.ts'
import { createServerFiles, type ServerFiles } from './server-files.ts'
import type { FreedTrash } from './trash-freeing.ts'

const SWEEP_MS = 10 * 60_000
const DAY_MS = 24 * 3600_000

export interface AgentFilesOptions {
  layout: Layout
  /** How long deleted things are kept. */
  trashKeepMs?: number
  now?: () => number
  /** Who may be fetched from, and how much. */
  pullOptions?: PullOptions
  /** Resolves once it is durable that trash of this server went to make room. */
  recordFreed?: (serverId: string, freed: FreedTrash) => Promise<void>
  onUnexpected: (error: unknown, serverId: string) => void
}

export interface FilesOfAgent extends AgentFiles {
  /** For the other parts of the agent. Fails with `not_found` for a server that has no folder here. */
  server(serverId: string): ServerFiles
  /** For the task runner: the long work of `FilesWork`. */
  handlers: Record<string, TaskHandler>
  /** Must be called when a server's folders are taken away. */
  forget(serverId: string): void
  /** Takes away what a crash left, then sweeps now and then, in the background. */
  start(): Promise<void>
  /** Empties old trash and corrects the accounts, after a sweep that is under way. */
  sweep(): Promise<void>
  stop(): Promise<void>
}

export function createAgentFiles({
  layout,
  trashKeepMs = DAY_MS,
  now = Date.now,
  pullOptions = PULL_OPTIONS,
  recordFreed = async () => {},
  onUnexpected,
}: AgentFilesOptions): FilesOfAgent {
  const servers = new Map<string, ServerFiles>()
  const repeats = createRepeats(now)
  const copies = new Map<string, AbortController>()
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let sweeping = Promise.resolve()
  const diskOf = createDisks(trashes)

  function server(serverId: string): ServerFiles {
    const known = servers.get(serverId)
    if (known) return known
    const made = createServerFiles({ layout, trashKeepMs, now, diskOf, recordFreed }, serverId)
    servers.set(serverId, made)
    return made
  }

  const serverIds = () => readdirSync(layout.servers).filter((entry) => entry.startsWith('srv_'))

  async function forEachServer(work: (server: ServerFiles) => Promise<void>): Promise<void> {
    for (const name of serverIds()) {
      if (stopping.signal.aborted) return
      try {
        await work(server(name))
      } catch (error) {
        if (!stopping.signal.aborted && !isFailure(error, 'not_found')) onUnexpected(error, name)
      }
    }
  }

  function trashes(): TrashOnDisk[] {
    return serverIds().flatMap((serverId) => {
      try {
        const { trash, folders } = server(serverId)
        return [{ trash, folder: folders.trash }]
      } catch (error) {
        if (!isFailure(error, 'not_found')) onUnexpected(error, serverId)
        return []
      }
    })
  }

  function sweep(): Promise<void> {
    sweeping = sweeping.then(() =>
      forEachServer(async ({ trash, usage, placements }) => {
        placements.expire(now() - DAY_MS)
        await trash.recover(stopping.signal)
        await trash.expire(stopping.signal)
        await usage.rescan(stopping.signal)
      }),
    )
    return sweeping
  }

  return {
    server,
    handlers: {
      'files.pack': (work, context) => pack(server(context.serverId), work as PackWork, context),
      'files.unpack': (work, context) => unpack(server(context.serverId), work as UnpackWork, context),
      'files.pull': (work, context) => pull(server(context.serverId), work as PullWork, context, pullOptions),
    },
    forget(serverId) {
      servers.delete(serverId)
    },

    async start() {
      await mkdir(layout.servers, { recursive: true })
      await forEachServer(({ staging }) => staging.recover())
      void sweep()
      timer = setInterval(() => void sweep(), SWEEP_MS).unref()
    },
    sweep,
    async stop() {
      clearInterval(timer)
      stopping.abort()
      for (const abort of copies.values()) abort.abort()
      await sweeping
    },

    list: async ({ serverId, ...request }) => await list(server(serverId).files, request),
    stat: async ({ serverId, path }) => describePath(server(serverId).files, path),
    makeFolder: async ({ serverId, path, name }) => await makeFolder(server(serverId), path, name),

    copy: ({ serverId, requestId, location }) =>
      repeats.once(`copy ${serverId} ${requestId}`, async () => {
        const abort = new AbortController()
        copies.set(`${serverId} ${requestId}`, abort)
        try {
          return await copy(server(serverId), location, abort.signal)
        } finally {
          copies.delete(`${serverId} ${requestId}`)
        }
      }),
    async cancelCopy({ serverId, requestId }) {
      copies.get(`${serverId} ${requestId}`)?.abort()
    },

    remove: ({ serverId, requestId, root, files }) =>
      repeats.once(`remove ${serverId} ${requestId}`, async () => await remove(server(serverId), { root, files })),
    move: ({ serverId, requestId, ...request }) =>
      repeats.once(`move ${serverId} ${requestId}`, async () => await move(server(serverId), request)),
    search: async ({ serverId, ...request }) =>
      await search(server(serverId).files, { ...request, signal: stopping.signal }),

    listTrash: async ({ serverId, limit = 50, after = null }) => server(serverId).trash.list(limit, after),
    restoreTrash: ({ serverId, requestId, trashId }) =>
      repeats.once(`restore ${serverId} ${requestId}`, async () => {
        const found = server(serverId)
        using _held = found.lock.share()
        const path = await found.trash.restore(trashId)
        found.usage.touch()
        return describePath(found.files, path)
      }),
    emptyTrash: async ({ serverId }) => ({ freedBytes: await server(serverId).trash.emptyAll() }),

    usage: async ({ serverId }) => await server(serverId).usage.read(),
    async setQuota({ serverId, quotaBytes }) {
      server(serverId).setQuota(quotaBytes)
    },
  }
}

async function makeFolder({ files, lock }: ServerFiles, path: string, name: string) {
  using _held = lock.share()
  checkNewName(name)
  const parents = parsePath(path)
  parseEntry(parents, name)
  using parent = files.mkdirs(parents)
  const created = made(() => mkdirAt(parent, name))
  if (!created && !statsIfThere(parent, name)?.isDirectory())
    throw fail('already_exists', `Something that is not a directory is named ${JSON.stringify(name)}.`)
  await fsyncDirectory(parent)
  return { entry: describeAt(parent, name), created }
}

function made(make: () => void): boolean {
  try {
    explained('/', make)
    return true
  } catch (error) {
    if (isFailure(error, 'already_exists') || hasCode(error, 'EEXIST')) return false
    throw error
  }
}

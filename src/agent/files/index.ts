// The agent's side of files: the port that control calls, and what the agent's own HTTP routes, backups and tasks use.
import { readdirSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import type { AgentFiles, FilesWork, RepeatableRequest } from '../../contract/agent/agent-files.ts'
import { isFailure } from '../../contract/errors.ts'
import { createJournal, type Journal } from '../journal/journal.ts'
import type { Layout } from '../layout.ts'
import type { TaskHandlers } from '../tasks.ts'
import { pack } from './archives/pack.ts'
import { placeAllRests } from './archives/placing.ts'
import { unpack } from './archives/unpack.ts'
import { answeredBefore, BY_THE_SYSTEM, type Change, journaled, settle } from './changes/changes.ts'
import { createRepeats } from './changes/repeats.ts'
import { copy } from './copy.ts'
import { aboutField, aboutFieldAsync } from './field-faults.ts'
import { makeFolder } from './folder.ts'
import { setMode } from './mode.ts'
import { move } from './move.ts'
import { PULL_OPTIONS, type PullOptions, pull } from './pull/pull.ts'
import { describePath } from './reading/entries.ts'
import { createReadings } from './reading/readings.ts'
import { remove } from './remove.ts'
import { isLeaving } from './sandbox/errors.ts'
import { createServerFiles, type ServerFiles } from './server-files.ts'
import { createDisks, type TrashOnDisk } from './space/disk.ts'
import type { FreedTrash } from './trash/trash-freeing.ts'
import { restoreTrash } from './trash/trash-restore.ts'

const SWEEP_MS = 10 * 60_000
/** Whoever uses the service when it has just been started does not wait for every tree to be walked. */
const FIRST_SWEEP_MS = 60_000
const DAY_MS = 24 * 3600_000
const BATCHES_PROBED = 100

export interface AgentFilesOptions {
  layout: Layout
  /** One of its own by default. */
  journal?: Journal
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
  handlers: TaskHandlers<FilesWork['kind']>
  /** Must be called when a server's folders are taken away. */
  forget(serverId: string): void
  /** Sees to what a crash has cut short, so that every change has its fact. Before anything else looks at the files. */
  settle(): Promise<void>
  /** Takes away what a crash left, then sweeps now and then, in the background. */
  start(): Promise<void>
  /** Empties old trash and corrects the accounts, after a sweep that is under way. */
  sweep(): Promise<void>
  stop(): Promise<void>
}

export function createAgentFiles(options: AgentFilesOptions): FilesOfAgent {
  const { layout, trashKeepMs = DAY_MS, now = Date.now, pullOptions = PULL_OPTIONS, onUnexpected } = options
  const { recordFreed = async () => {} } = options
  const ownJournal = options.journal
    ? undefined
    : createJournal({ folder: layout.journal, now, onUnexpected: (error) => onUnexpected(error, '') })
  const journal = options.journal ?? (ownJournal as Journal)
  const servers = new Map<string, ServerFiles>()
  const repeats = createRepeats(now)
  const copies = new Map<string, AbortController>()
  const stopping = new AbortController()
  const readings = createReadings({ trashKeepMs, stopping: stopping.signal })
  let timers: NodeJS.Timeout[] = []
  let sweeping = Promise.resolve()
  const diskOf = createDisks(trashes)

  function server(serverId: string): ServerFiles {
    const known = servers.get(serverId)
    if (known) return known
    const deps = { layout, journal, trashKeepMs, now, diskOf, recordFreed, onUnexpected }
    const made = createServerFiles(deps, serverId)
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
        if (!stopping.signal.aborted && !isLeaving(error)) onUnexpected(error, name)
      }
    }
  }

  function trashes(): TrashOnDisk[] {
    return serverIds().flatMap((serverId) => {
      try {
        const { trash, folders } = server(serverId)
        return [{ trash, folder: folders.trash }]
      } catch (error) {
        if (!isLeaving(error)) onUnexpected(error, serverId)
        return []
      }
    })
  }

  /** What is left over, and what has expired. */
  async function tidy({ trash, placements, staging }: ServerFiles): Promise<void> {
    placements.expire(now() - DAY_MS)
    await staging.tidy()
    await trash.recover(stopping.signal)
    await trash.expire(stopping.signal)
  }

  function inTurn(work: (server: ServerFiles) => Promise<void>): Promise<void> {
    sweeping = sweeping.then(() => forEachServer(work))
    return sweeping
  }

  const sweep = () =>
    inTurn(async (found) => {
      await tidy(found)
      await found.usage.rescan(stopping.signal)
    })

  /** Once for a request, however often it is asked for; what is remembered here is forgotten with the process. */
  async function once<T>(
    kind: string,
    { serverId, requestId, origin = BY_THE_SYSTEM }: RepeatableRequest,
    work: (server: ServerFiles, change: Change) => Promise<T>,
  ): Promise<T> {
    const found = server(serverId)
    const make = async () => await work(found, { kind, requestId: requestId ?? null, origin })
    if (requestId === undefined) return await make()
    const before = await answeredBefore(found, requestId, origin)
    return before ? (before.answer as T) : await repeats.once(`${kind} ${serverId} ${requestId}`, make)
  }

  return {
    server,
    handlers: {
      'files.pack': (work, context) => pack(server(context.serverId), work, context),
      'files.unpack': (work, context) => unpack(server(context.serverId), work, context),
      'files.pull': (work, context) => pull(server(context.serverId), work, context, pullOptions),
    },
    forget(serverId) {
      servers.delete(serverId)
    },

    async settle() {
      for (const intent of journal.unsettled()) {
        try {
          await settle(server(intent.serverId), intent)
        } catch (error) {
          // A server that is gone took the change with it; one that is put aside has it until it is back, and whatever else
          // is in the way may be gone at the next start.
          if (isFailure(error, 'not_found')) journal.drop(intent)
          if (!isFailure(error, 'server_deleted')) onUnexpected(error, intent.serverId)
        }
      }
    },

    async start() {
      await mkdir(layout.servers, { recursive: true })
      await forEachServer(async (found) => {
        await found.staging.recover()
        await placeAllRests(found, now())
      })
      void inTurn(tidy)
      timers = [
        setTimeout(() => void sweep(), FIRST_SWEEP_MS).unref(),
        setInterval(() => void sweep(), SWEEP_MS).unref(),
      ]
    },
    sweep,
    async stop() {
      for (const timer of timers) clearTimeout(timer)
      stopping.abort()
      for (const abort of copies.values()) abort.abort()
      await sweeping
      await readings.close()
      ownJournal?.close()
    },

    list: ({ serverId, ...request }) => aboutFieldAsync('/path', () => readings.list(server(serverId), request)),
    stat: async ({ serverId, path }) => aboutField('/path', () => describePath(server(serverId).files, path)),
    makeFolder: ({ path, name, ...asked }) =>
      once('file.folder_created', asked, (found, change) =>
        aboutFieldAsync('/path', () => makeFolder(found, { path, name }, change)),
      ),

    copy({ location, ...asked }) {
      const name = `${asked.serverId} ${asked.requestId}`
      const abort = copies.get(name) ?? new AbortController()
      copies.set(name, abort)
      return once('file.copied', asked, (found, change) =>
        aboutFieldAsync('/location', () => copy(found, location, change, abort.signal)),
      ).finally(() => copies.delete(name))
    },
    async cancelCopy({ serverId, requestId }) {
      copies.get(`${serverId} ${requestId}`)?.abort()
    },

    remove: ({ root, files, ...asked }) =>
      once('file.deleted', asked, (found, change) => remove(found, { root, files }, change)),
    move: ({ moves, overwrite = false, ...asked }) =>
      once('file.moved', asked, (found, change) => move(found, { moves, overwrite }, change)),
    setMode: ({ root, files, mode, ...asked }) =>
      once('file.mode_changed', asked, (found, change) => setMode(found, { root, files, mode }, change)),
    search: ({ serverId, ...request }, signal) =>
      aboutFieldAsync('/path', () =>
        readings.search(
          server(serverId),
          request,
          signal ? AbortSignal.any([signal, stopping.signal]) : stopping.signal,
        ),
      ),

    listTrash: async ({ serverId, limit = 50, after = null }) =>
      await readings.listTrash(server(serverId), { limit, after }),
    restoreTrash: ({ trashId, ...asked }) =>
      once('file.restored', asked, (found, change) =>
        aboutFieldAsync('/trashId', () => restoreTrash(found, trashId, change)),
      ),
    emptyTrash: (asked) => once('file.trash_emptied', asked, emptyTrash),

    usage: async ({ serverId }) => await server(serverId).usage.read(),
    async setQuota({ serverId, quotaBytes, maxEntries }) {
      server(serverId).setQuota({ bytes: quotaBytes, entries: maxEntries })
    },
  }
}

async function emptyTrash(server: ServerFiles, change: Change): Promise<{ freedBytes: number }> {
  using _held = server.lock.shareTrash()
  const empty = async () => {
    // If any of it is gone, one of these is.
    const batches = await server.trash.newest(BATCHES_PROBED)
    return await journaled(server, change, { op: 'emptied', batches }, async (durable) => {
      await durable
      const freedBytes = await server.trash.emptyAll()
      return { answer: { freedBytes }, properties: { freedBytes } }
    })
  }
  return await server.claims.alone(() => ['trash'], empty)
}

// One machine's disk and processes behind the Agent port.
import { existsSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { BlobStore } from '../blobs/store.ts'
import type { Agent } from '../contract/agent.ts'
import { CONNECTIONS_MAX } from '../contract/fixed-limits.ts'
import type { Forward } from '../http/forward.ts'
import { createSignedLinks } from '../http/signed-links.ts'
import { createAgentBackups } from './backups/index.ts'
import { measureDisks, probeDisks } from './disk-probe.ts'
import { createTransferShares } from './fair-shares.ts'
import { createAgentFiles } from './files/index.ts'
import { explainedDisk } from './files/sandbox/errors.ts'
import { DEFAULT_GAMES_OPTIONS, type GamesOptions } from './games/games-deps.ts'
import { createAgentGames } from './games/index.ts'
import { createHealedRecorder } from './healed.ts'
import { createBackupDownloads } from './http/backup-downloads.ts'
import { createForward } from './http/content.ts'
import { createLinkDoor } from './http/link-door.ts'
import { createLinkRevocations } from './http/revocations.ts'
import { agentRoutes } from './http/routes.ts'
import { createTusUploads } from './http/tus-uploads.ts'
import { createOwnJournal } from './journal/own-journal.ts'
import { layout as layoutOf } from './layout.ts'
import { createAgentOffsite, type MirrorTarget } from './offsite/index.ts'
import { createRehearsals } from './rehearsals/rehearsals.ts'
import { createAgentServers } from './servers.ts'
import { createTasks } from './tasks.ts'

export interface AgentDeps {
  dataDir: string
  /** How long deleted files are kept. */
  trashKeepMs: number
  /** What control signs links with. */
  linksKey: Buffer
  /** 32 bytes that seal backups at rest; null: they are not sealed. */
  backupKey?: Buffer | null
  /** What one backup may read in a second; null for no limit. */
  backupBytesPerSecond?: number | null
  /** Where backups are mirrored; nowhere by default. */
  mirror?: MirrorTarget | null
  /** Opens the copy of the backups, when it is first needed; there is none by default. */
  openOffsite?: (() => Promise<BlobStore>) | null
  /** Of the files of one backup or restore, open at once. */
  filesAtOnce?: number
  /** Uploads and downloads at once; as many as there may be connections by default. */
  transfersAtOnce?: number
  /** How games are run; on a machine that cannot isolate them, not at all by default. */
  games?: GamesOptions
  clock: { now(): number }
  log: Logger
}

export interface LocalAgent extends Agent {
  forward: Forward
  /** A Fastify plugin: the doors that signed links open. */
  routes(app: FastifyInstance): Promise<void>
  /** Goes on with what a crash has cut short. */
  start(): Promise<void>
  stop(): Promise<void>
}

export function createAgent(deps: AgentDeps): LocalAgent {
  const { dataDir, trashKeepMs, linksKey, clock, log } = deps
  const layout = layoutOf(dataDir)
  const journal = createOwnJournal(layout, deps)
  const files = createAgentFiles({
    layout,
    journal,
    trashKeepMs,
    now: clock.now,
    recordFreed: async (serverId, { id, requestedBy, ...properties }) => {
      // Whose work needed the room is nobody else's business.
      const requester = requestedBy === serverId ? { requestedBy } : {}
      await journal.add({
        // Told again after a crash, it is the same entry.
        id: id.replace('trs_', 'act_'),
        serverId,
        kind: 'file.trash_freed',
        cause: null,
        properties: { ...properties, ...requester, freeingId: id },
      })
    },
    onUnexpected: (error, serverId) => log.error({ err: error, serverId }, 'upkeep of files failed'),
  })
  const gamesOptions = deps.games ?? DEFAULT_GAMES_OPTIONS
  const games = createAgentGames({
    layout,
    journal,
    files,
    options: gamesOptions,
    onUnexpected: (error, serverId) => log.error({ err: error, serverId }, 'a game could not be seen to'),
  })
  const backups = createAgentBackups({
    layout,
    server: files.server,
    key: deps.backupKey ?? null,
    offsite: deps.openOffsite,
    onHealed: createHealedRecorder({ journal, log }),
    bytesPerSecond: deps.backupBytesPerSecond ?? null,
    filesAtOnce: deps.filesAtOnce,
    games,
    now: clock.now,
    onUnexpected: (error, serverId) => log.error({ err: error, serverId }, 'a restore could not be finished'),
  })
  const offsite = createAgentOffsite({
    layout,
    repository: backups.repository,
    target: deps.mirror ?? null,
    now: clock.now,
  })
  const rehearsals = createRehearsals({
    layout,
    backups,
    options: gamesOptions,
    now: clock.now,
    onUnexpected: (error, serverId) => log.error({ err: error, serverId }, 'a rehearsal could not be seen to'),
  })
  const revocations = createLinkRevocations(layout.revoked, clock)
  const isHere = (serverId: string) => existsSync(layout.server(serverId).root)
  const door = createLinkDoor({
    links: createSignedLinks(linksKey, clock),
    revocations,
    transfers: createTransferShares(deps.transfersAtOnce ?? CONNECTIONS_MAX),
    isHere,
    clock,
  })
  const uploads = createTusUploads({
    serversFolder: layout.servers,
    files,
    journal,
    door,
    clock,
    onUnexpected: (error, serverId) => log.error({ err: error, serverId }, 'upkeep of uploads failed'),
  })
  const servers = createAgentServers(layout, {
    async quiesce(serverId) {
      await door.endForServer(serverId)
      await games.end(serverId)
      // A restore that has stopped in the middle is put aside as it is, and comes back so.
      const retired = await files.server(serverId).lock.retire()
      // Whoever came through the door in between.
      await door.endForServer(serverId)
      await games.end(serverId)
      return retired
    },
    onRemoved(serverId) {
      games.forget(serverId)
      uploads.forget(serverId)
      files.forget(serverId)
      backups.forget(serverId).catch((err) => log.error({ err, serverId }, 'a server could not be forgotten'))
    },
  })
  const tasks = createTasks({
    handlers: {
      ...files.handlers,
      ...backups.handlers,
      ...offsite.handlers,
      ...games.handlers,
      ...rehearsals.handlers,
    },
    onUnexpected: (error, taskId) => log.error({ err: error, taskId }, 'task failed'),
  })
  const serveBackup = createBackupDownloads({ backups, door })
  const forwardFiles = createForward({ files, door })
  return {
    servers,
    files,
    backups,
    offsite,
    games,
    tasks,
    facts: journal,
    forward: (purpose, link, request, reply) =>
      purpose === 'download-backup' ? serveBackup(link, request, reply) : forwardFiles(purpose, link, request, reply),
    routes: async (app) => agentRoutes(app, { files, door, uploads, serveBackup }),
    links: revocations,
    disks: {
      probe: () => explainedDisk(() => probeDisks(dataDir, layout)),
      measure: () => explainedDisk(() => measureDisks(dataDir, layout)),
    },
    async start() {
      await servers.recover()
      await files.settle()
      // Before anything tidies up: a restore that was cut short is finished from what it has staged.
      await backups.start()
      await files.start()
      await uploads.start()
      await games.start()
      await rehearsals.recover()
    },
    async stop() {
      journal.stop()
      await uploads.stop()
      // A backup under way lets the game go that it has held still.
      await tasks.stop()
      games.stop()
      await files.stop()
      await backups.stop()
      journal.close()
    },
  }
}

// The agent's side of backups: the port that control calls, the work that tasks run, and the streams that the agent's own
// HTTP routes send.
import { mkdirSync, readdirSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { AgentBackups, BackupReport, BackupsWork, RestoreReport } from '../../contract/agent/agent-backups.ts'
import type { ArchiveFormat } from '../../contract/agent/agent-files.ts'
import type { WorkOf } from '../../contract/agent.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import { BACKUP_PREVIEWS } from '../../contract/fixed-limits.ts'
import { createShares } from '../fair-shares.ts'
import { aboutFieldAsync } from '../files/field-faults.ts'
import type { ServerFiles } from '../files/server-files.ts'
import type { WorldHold } from '../games/world-holds.ts'
import type { Layout } from '../layout.ts'
import type { TaskContext, TaskHandlers } from '../tasks.ts'
import { runBackup } from './create/backup.ts'
import { countTree } from './create/preview.ts'
import type { BlockHash } from './format/format.ts'
import { holdManifest } from './format/manifest.ts'
import type { ManifestSizes } from './format/manifest-writer.ts'
import { runReclaim } from './maintain/reclaim.ts'
import { runScrub } from './maintain/scrub.ts'
import { runVerify } from './maintain/verify.ts'
import { compareBackups, compareWithLive, fileVersions, listDirectory, requireFile } from './read/browse.ts'
import { type Download, openDownload } from './read/download.ts'
import { streamFile } from './read/reader.ts'
import { runRestore } from './restore/restore.ts'
import {
  endedRestores,
  finishRestore,
  forgetRestore,
  readOutcome,
  recoverRestores,
  sweepEnded,
  unfinished,
} from './restore/restore-finish.ts'
import { restoreInto } from './restore/restore-into.ts'
import { requirePaths } from './restore/restore-plan.ts'
import type { RestoreTarget } from './restore/restore-target.ts'
import { askInDoubt, createBackupReading, explained, healKnown } from './store/backup-reading.ts'
import { markLock, removeMark } from './store/lock-marks.ts'
import { deleteManifest, latestManifest, listManifests } from './store/manifests.ts'
import { faultsInOpenStore } from './store/missing-blocks.ts'
import { type Healed, openRepository, type Repository, type RepositoryConfig } from './store/repository.ts'
import { patternsFor } from './tree/ignore-file.ts'

const HOUR_MS = 3600_000
/** Of a restore that has ended, and whose report is damaged: it is not done again over what is newer. */
const NOTHING_KNOWN: RestoreReport = { filesRestored: 0, filesKept: 0, bytesRestored: 0, displaced: 0 }

/** What a restore needs of the files that it restores into. */
type RestorableFiles = Pick<ServerFiles, 'folders' | 'files' | 'trash' | 'usage' | 'gate'>

export interface AgentBackupsOptions {
  layout: Layout
  /** From the agent's files. */
  server(serverId: string): RestorableFiles & Pick<ServerFiles, 'lock'>
  /** Whether the game of a server runs; none does by default. */
  games?: {
    requireStopped(serverId: string): void
    holdWorld(serverId: string, signal: AbortSignal): Promise<WorldHold>
  }
  /** 32 bytes, or null: the store is not encrypted. */
  key: Uint8Array | null
  /** Opens the copy of the store, when it is first needed; there is none by default. */
  offsite?: RepositoryConfig['offsite']
  /** What the disk had lost is on it again. */
  onHealed?: ((healed: Healed) => void) | undefined
  /** Of what is read from servers' files by one backup. */
  bytesPerSecond?: number | null
  /** Of the files of one backup or restore, open at once. */
  filesAtOnce?: number | undefined
  /** How manifests are cut; tests have small trees. */
  manifestSizes?: ManifestSizes | undefined
  /** How far the worker threads stand back, 0 to 19. */
  nice?: number
  threads?: number | undefined
  /** Of a store that is made now; the fastest here unless it is given. */
  blockHash?: BlockHash | undefined
  /** Packs that nobody needs are kept this long: a backup that was cut short finds its blocks again. */
  graceMs?: number
  now?: () => number
  onUnexpected: (error: unknown, serverId: string) => void
}

export interface BackupsOfAgent extends AgentBackups {
  /** The open store, for what mirrors it. */
  repository(): Promise<Repository>
  /** For the task runner: the long work of `BackupsWork`. */
  handlers: TaskHandlers<BackupsWork['kind']>
  /** Opens the store and finishes restores that a crash interrupted. */
  start(): Promise<void>
  /** A server that is gone; its backups may be kept. */
  forget(serverId: string): Promise<void>
  stop(): Promise<void>
  /**
   * An archive from the byte `start`, for the agent's own HTTP routes. The same bytes every time. The stream fails, and what
   * is read for it ends, when the signal fires.
   */
  download(request: {
    serverId: string
    backupId: string
    format: ArchiveFormat
    start?: number
    signal: AbortSignal
  }): Promise<Download>
  /** Everything of a backup into empty files that are no server's. Fails with `disk_full` before it has begun where it would. */
  restoreInto(
    target: RestorableFiles,
    backup: { serverId: string; backupId: string },
    context: Pick<TaskContext, 'signal' | 'report'>,
  ): Promise<void>
  /** One file, from `start` up to, not including, `end`. */
  readFile(request: {
    serverId: string
    backupId: string
    path: string
    start?: number
    end?: number
  }): Promise<{ stream: Readable; sizeBytes: number; modifiedAt: number }>
}

export function createAgentBackups(options: AgentBackupsOptions): BackupsOfAgent {
  const { layout, server, key, bytesPerSecond = null, nice = 10, graceMs = HOUR_MS, now = Date.now } = options
  const busy = new Set<string>()
  const previews = createShares(BACKUP_PREVIEWS)
  let opening: Promise<Repository> | undefined
  let forgetting: Promise<unknown> = Promise.resolve()

  function repository(): Promise<Repository> {
    opening ??= (async () => {
      mkdirSync(layout.backups, { recursive: true, mode: 0o700 })
      const { threads, blockHash, filesAtOnce, manifestSizes, offsite, onHealed } = options
      const blobs = { kind: 'local' as const, dir: layout.backups }
      const tuning = { nice, threads, blockHash, filesAtOnce, manifestSizes }
      return await openRepository({ blobs, printFile: layout.prints, offsite, key, onHealed, ...tuning })
    })()
    return opening
  }

  const { manifestOf, reading, readingAll, healed } = createBackupReading(repository)

  const targetOf = (serverId: string) => targetFor(serverId, server(serverId))

  function targetFor(serverId: string, { folders, files, trash, usage, gate }: RestorableFiles): RestoreTarget {
    return {
      serverId,
      repository,
      folders,
      sandbox: files,
      prepareTrash: (items) => trash.prepare('replaced', items),
      recoverTrash: () => trash.recover(),
      usage,
      gate,
      now,
      onUnexpected: (error) => options.onUnexpected(error, serverId),
    }
  }

  /** One backup, verify or restore of a server at a time. */
  async function alone<T>(serverId: string, work: () => Promise<T>): Promise<T> {
    if (busy.has(serverId)) throw fail('server_busy', 'A backup or a restore of this server is under way.')
    busy.add(serverId)
    try {
      return await explained(work)
    } finally {
      busy.delete(serverId)
    }
  }

  async function create(
    work: WorkOf<'backups.create'>,
    { serverId, signal, report }: TaskContext,
  ): Promise<BackupReport> {
    const opened = await repository()
    const done = await manifestOf(serverId, work.backupId).catch((error) => {
      if (isFailure(error, 'not_found')) return undefined
      throw error
    })
    if (done) return { ...done.meta, checksum: done.checksum }
    const { files, lock } = server(serverId)
    using _files = lock.share()
    using _store = await opened.writing.share(signal)
    // Held: whoever deletes it meanwhile does not take away what this one is compared with.
    await using previous = await latestManifest(opened, serverId)
    if (previous) report({ filesTotal: previous.meta.fileCount, bytesTotal: previous.meta.sizeBytes })
    const patterns = await patternsFor(files, work)
    const { backupId, name, serverName, createdAt, isLocked } = work
    const { games } = options
    const holdWorld = games && ((aborted: AbortSignal) => games.holdWorld(serverId, aborted))
    const given = { backupId, serverId, name, serverName, createdAt, isLocked }
    const request = { ...given, ...patterns, holdWorld, bytesPerSecond }
    const { meta, checksum } = await runBackup(opened, files, request, previous, signal, report)
    report({ filesTotal: meta.fileCount, bytesTotal: meta.sizeBytes })
    return { ...meta, checksum }
  }

  async function restore(work: WorkOf<'backups.restore'>, { serverId, signal, report }: TaskContext) {
    const { jobId, backupId, sourceServerId, mode, paths, safetyBackupId } = work
    const target = targetOf(serverId)
    const earlier = endedReport(target, jobId)
    if (earlier) return earlier
    const opened = await repository()
    const { blobs, sealer } = opened
    await readingAll(sourceServerId, backupId, async () => {})
    await using manifest = await holdManifest(blobs, sealer, { serverId: sourceServerId, backupId })
    using _files = await server(serverId).lock.exclude(signal)
    // From here on none is started.
    options.games?.requireStopped(serverId)
    using _store = await opened.writing.share(signal)
    if (paths === null) report({ filesTotal: manifest.meta.fileCount, bytesTotal: manifest.meta.sizeBytes })
    const isOrigin = sourceServerId === serverId
    await sweepEnded(target)
    const request = { jobId, manifest, mode, paths, isOrigin, safetyBackupId }
    return await runRestore(opened, target, request, signal, (filesDone, bytesDone) => report({ filesDone, bytesDone }))
  }

  /** Undefined where nothing was changed yet. */
  function endedReport(target: RestoreTarget, jobId: string): RestoreReport | undefined {
    const outcome = readOutcome(target, jobId)
    const stopped = target.gate.stopped()
    if (outcome?.phase === 'undone') throw fail('not_found', 'The restore was taken back.')
    if (outcome?.phase === 'done') return outcome.report ?? NOTHING_KNOWN
    if (outcome && stopped) throw unfinished(stopped)
    return undefined
  }

  async function finish({ jobId, direction }: WorkOf<'backups.finishRestore'>, { serverId, signal }: TaskContext) {
    const { lock, usage } = server(serverId)
    using _files = await lock.exclude(signal, { evenIfStopped: true })
    try {
      return await finishRestore(targetOf(serverId), { jobId, direction })
    } finally {
      usage.touch()
    }
  }

  return {
    repository,
    async start() {
      const opened = await repository()
      // What goes wrong with it is met again, by whoever needs what is damaged.
      void healKnown(opened).catch(() => {})
      mkdirSync(layout.servers, { recursive: true })
      for (const serverId of readdirSync(layout.servers).filter((name) => name.startsWith('srv_'))) {
        try {
          await recoverRestores(targetOf(serverId))
        } catch (error) {
          if (!isFailure(error, 'not_found')) options.onUnexpected(error, serverId)
        }
      }
    },
    forget(serverId) {
      const forgotten = (async () => {
        const { latest, prints } = await repository()
        latest.delete(serverId)
        await prints.forget(serverId)
      })()
      forgetting = Promise.allSettled([forgetting, forgotten])
      return forgotten
    },
    async stop() {
      await forgetting
      await (await opening?.catch(() => undefined))?.close()
    },

    handlers: {
      'backups.create': (work, context) => alone(context.serverId, () => create(work, context)),
      'backups.restore': (work, context) => alone(context.serverId, () => restore(work, context)),
      'backups.finishRestore': (work, context) => alone(context.serverId, () => finish(work, context)),
      'backups.verify': async ({ backupId, isOffsite }, { serverId, signal, report }) => {
        const said = (bytesDone: number) => report({ bytesDone })
        const name = { serverId, backupId }
        return await explained(async () => runVerify(await repository(), name, { isOffsite }, signal, said))
      },
      'backups.scrub': async ({ share }, { signal, report }) => {
        const said = (bytesDone: number, bytesTotal: number) => report({ bytesDone, bytesTotal })
        return await explained(async () => runScrub(await repository(), { share }, signal, said))
      },
      'backups.reclaim': async (_work, { signal, report }) => {
        const said = (filesDone: number, filesTotal: number) => report({ filesDone, filesTotal })
        return await explained(async () => await runReclaim(await repository(), { graceMs, now: now() }, signal, said))
      },
    },

    async list({ serverId, isThorough = false }) {
      const opened = await repository()
      if (isThorough) await askInDoubt(opened)
      const findFault = isThorough ? await faultsInOpenStore(opened) : undefined
      return await listManifests(opened, { serverId: serverId ?? undefined, findFault })
    },
    heal: healed,
    async remove(name) {
      const opened = await repository()
      await deleteManifest(opened, name)
      await removeMark(opened.blobs, name)
    },
    async setLock({ isLocked, ...name }) {
      const { blobs } = await repository()
      await explained(() => markLock(blobs, name, isLocked))
    },
    requirePaths: ({ serverId, backupId, paths }) =>
      reading(serverId, backupId, (manifest) => requirePaths(manifest, paths)),
    browse: ({ serverId, backupId, path, limit, after }) =>
      aboutFieldAsync('/path', () =>
        reading(serverId, backupId, (manifest) => listDirectory(manifest, path, { limit, after })),
      ),
    async versions({ serverId, path }) {
      const opened = await repository()
      return await aboutFieldAsync('/path', () => explained(() => fileVersions(opened, serverId, path)))
    },
    async compare({ serverId, from, to, limit, after }, signal) {
      const page = { limit, after }
      if (to !== null)
        return await reading(serverId, from, (before) =>
          reading(serverId, to, (now) => compareBackups(before, now, page, signal)),
        )
      const { files } = server(serverId)
      return await reading(serverId, from, (before, opened) => compareWithLive(opened, before, files, page, signal))
    },
    async preview({ serverId, ...choice }, signal) {
      const { files } = server(serverId)
      return await previews.run(serverId, signal, () =>
        explained(async () => countTree(files, (await patternsFor(files, choice)).ignored, signal)),
      )
    },
    async readRestore({ serverId, jobId }) {
      return readOutcome(targetOf(serverId), jobId)
    },
    async forgetRestore({ serverId, jobId }) {
      await forgetRestore(targetOf(serverId), jobId)
    },
    async endedRestores({ serverId }) {
      return endedRestores(targetOf(serverId))
    },
    async stoppedRestore({ serverId }) {
      return server(serverId).gate.stopped() ?? null
    },
    async store() {
      const { packs, index, sealer, damagedBlobs, isAway } = await repository()
      const away = [...packs].filter(([packId]) => isAway(packId))
      return {
        packCount: packs.size,
        blockCount: index.blockCount,
        packBytes: sumOf(packs),
        awayPackCount: away.length,
        awayPackBytes: sumOf(away),
        isEncrypted: sealer.isEncrypted,
        damagedBlobs: [...damagedBlobs].map(([blob, what]) => ({ blob, what })),
      }
    },

    async download({ serverId, backupId, format, start = 0, signal }) {
      return await readingAll(serverId, backupId, async () => {
        const manifest = await manifestOf(serverId, backupId)
        return await openDownload(await repository(), manifest, format, { share: serverId, start, signal })
      })
    },
    restoreInto: (files, name, context) =>
      readingAll(name.serverId, name.backupId, async () =>
        restoreInto(await repository(), targetFor(name.serverId, files), name, context),
      ),
    async readFile({ serverId, backupId, path, start, end }) {
      const entry = await reading(serverId, backupId, (manifest) => requireFile(manifest, path))
      const opened = await repository()
      await askInDoubt(opened)
      const stream = streamFile(opened, entry, { share: serverId, start, end })
      return { stream, sizeBytes: entry.sizeBytes, modifiedAt: Number(entry.mtimeNs / 1_000_000n) }
    },
  }
}

const sumOf = (packs: Iterable<[string, number]>) => [...packs].reduce((sum, [, size]) => sum + size, 0)

// Makes a backup: walks the tree beside the last manifest, has what changed read by the worker threads, and writes the
// new manifest in walk order. Order of writes: packs, the index, the manifest's part, the manifest; see docs/backup-format.md.
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import { createHoleBudget } from '../../files/space/hole-budget.ts'
import type { HeldWorld, WorldHold } from '../../games/world-holds.ts'
import type { Entry } from '../format/entries.ts'
import type { Manifest, ManifestMeta } from '../format/manifest.ts'
import { createManifest, type ManifestWriter } from '../format/manifest-writer.ts'
import { deleteManifest } from '../store/manifests.ts'
import type { Repository } from '../store/repository.ts'
import { createNotes } from '../tree/backup-entries.ts'
import { createEntryQueue } from './entry-queue.ts'
import { createFileReader } from './file-reader.ts'
import { createPackSink } from './pack-sink.ts'
import { type TreeWalk, walkTree } from './walk-tree.ts'

export interface BackupRequest {
  backupId: string
  serverId: string
  name: string
  serverName: string | undefined
  createdAt: number
  ignored: string
  /** What is to be said of the patterns, before anything else. */
  warning?: string
  isLocked: boolean
  /** Holds what may write to the files still, from before the first is read until the last has been. Nothing does by default. */
  holdWorld?: ((signal: AbortSignal) => Promise<WorldHold>) | undefined
  bytesPerSecond: number | null
}

export interface BackupResult {
  meta: ManifestMeta
  checksum: string
}

export interface BackupProgress {
  filesDone: number
  bytesDone: number
}

/** What a backup is made with. */
interface Run extends TreeWalk {
  request: BackupRequest
  startedAt: number
  manifest: ManifestWriter
}

export async function runBackup(
  repository: Repository,
  sandbox: Sandbox,
  request: BackupRequest,
  previous: Manifest | undefined,
  signal: AbortSignal,
  report: (progress: BackupProgress) => void,
): Promise<BackupResult> {
  const startedAt = Date.now()
  const { serverId, backupId, bytesPerSecond } = request
  await repository.prints.load()
  const { generation } = repository
  const { losses } = repository.index
  const isWhole = wholeCheck(repository, serverId, previous)
  const sink = createPackSink(repository)
  const manifest = createManifest(repository.blobs, repository.sealer, request, previous, repository.manifestSizes)
  const notes = createNotes()
  if (request.warning !== undefined) notes.warn(request.warning)
  const queue = createEntryQueue(manifest, report, ({ path }, first) =>
    notes.warn(`${path} is the same file as ${first.path}, which could not be read, and is not in the backup.`),
  )
  const pool = repository.pool.of(serverId)
  const reader = createFileReader({ repository, pool, sink, signal, holes: createHoleBudget(), bytesPerSecond })
  const given = { repository, sandbox, request, previous, signal, startedAt }
  const run: Run = { ...given, isWhole, pool, manifest, sink, reader, notes, queue }
  try {
    const { world, top } = await readAll(run)
    const isAll = notes.isAll()
    const result = await complete(run, world)
    // The count as it was at first: of what was lost meanwhile, files that came before may have need.
    repository.latest.set(serverId, { backupId, generation, losses, isAll, top })
    return result
  } catch (error) {
    await abandon(repository, run)
    throw error
  }
}

/** Whether the last manifest is known to have all its blocks in the store, so that none has to be looked up. */
function wholeCheck(repository: Repository, serverId: string, previous: Manifest | undefined): () => boolean {
  const { generation } = repository
  const latest = repository.latest.get(serverId)
  return () =>
    latest !== undefined &&
    latest.backupId === previous?.meta.backupId &&
    latest.generation === generation &&
    latest.losses === repository.index.losses
}

/** The world is let go as soon as everything has been read: what is written to the store after that is ours alone. */
async function readAll(run: Run): Promise<{ world: HeldWorld; top: Entry }> {
  const { request, signal } = run
  if (!request.holdWorld) return { world: NOBODY, top: await walkTree(run) }
  const hold = await request.holdWorld(signal)
  let world: HeldWorld
  let top: Entry
  try {
    top = await walkTree(run)
  } finally {
    world = await hold.release()
  }
  return { world, top }
}

const NOBODY: HeldWorld = { how: 'idle', heldMs: null, warnings: [] }

/** Packs and index, then the manifest and its part; only then may others count on what this backup has added. */
async function complete(run: Run, world: HeldWorld): Promise<BackupResult> {
  const { request, signal, startedAt, manifest, sink, notes, queue } = run
  await sink.finish()
  signal.throwIfAborted()
  for (const warning of world.warnings) notes.warn(warning)
  const { backupId, serverId, name, serverName, createdAt, ignored, isLocked } = request
  const given = {
    ...(serverName === undefined ? {} : { serverName }),
    ...{ backupId, serverId, name, createdAt, startedAt, completedAt: Date.now(), ignored, isLocked },
    ...{ consistency: notes.consistency(world), heldMs: world.heldMs, ...queue.counts, storedBytes: sink.storedBytes },
    ...{ warnings: notes.warnings, warningCount: notes.count() },
  }
  const result = await manifest.finish(given)
  await sink.publish()
  return result
}

async function abandon(repository: Repository, { request, reader, manifest, sink }: Run): Promise<void> {
  await reader.abandon()
  await manifest.abort().catch(() => {})
  // It may be there where only the sync of its directory failed: never a manifest without its packs.
  const isGone = await deleteManifest(repository, request).then(
    () => true,
    () => false,
  )
  // What cannot be deleted now is given back by a reclaim.
  if (isGone) await manifest.giveBack().catch(() => {})
  await sink.abort(isGone)
}

// Makes a backup: walks the tree beside the last manifest, has what changed read by the worker threads, and writes the
// new manifest in walk order. Order of writes: packs, the index, the manifest's part, the manifest; see docs/backup-format.md.
import { createTurns } from '../../../kit/waiting/turns.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import type { WalkEntry } from '../../files/sandbox/walk.ts'
import { createHoleBudget } from '../../files/space/hole-budget.ts'
import type { HeldWorld, WorldHold } from '../../games/world-holds.ts'
import type { Manifest, ManifestMeta } from '../format/manifest.ts'
import { createManifest, type ManifestWriter } from '../format/manifest-writer.ts'
import { deleteManifest } from '../store/manifests.ts'
import type { Repository } from '../store/repository.ts'
import { createNotes, isReadable, type Notes } from '../tree/backup-entries.ts'
import { createIgnoreRules } from '../tree/ignore-rules.ts'
import type { Pool } from '../workers/pool.ts'
import { createEntryQueue, type EntryQueue } from './entry-queue.ts'
import { createEntrySource, type EntrySource } from './entry-source.ts'
import { createFileReader, type FileReader } from './file-reader.ts'
import { createPackSink, type PackSink } from './pack-sink.ts'

/** Entries that wait for one before them to be read. */
const PENDING_AT_MOST = 2048

export interface BackupRequest {
  backupId: string
  serverId: string
  name: string
  serverName: string | undefined
  createdAt: number
  ignored: string
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
interface Run {
  sandbox: Sandbox
  request: BackupRequest
  signal: AbortSignal
  startedAt: number
  pool: Pool
  manifest: ManifestWriter
  sink: PackSink
  reader: FileReader
  notes: Notes
  queue: EntryQueue
  source: EntrySource
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
  const { generation } = repository
  const { losses } = repository.index
  const isWhole = wholeCheck(repository, serverId, previous)
  const sink = createPackSink(repository)
  const manifest = createManifest(repository.blobs, repository.sealer, request, previous, repository.manifestSizes)
  const notes = createNotes()
  const queue = createEntryQueue(manifest, report)
  const pool = repository.pool.of(serverId)
  const reader = createFileReader({ repository, pool, sink, signal, holes: createHoleBudget(), bytesPerSecond })
  const listeners = { onDamage: manifest.replace, onPatched: manifest.usePatches }
  const source = createEntrySource({
    repository,
    serverId,
    previous,
    ...listeners,
    isWhole,
    sink,
    reader,
    notes,
    queue,
  })
  const run: Run = { sandbox, request, signal, startedAt, pool, manifest, sink, reader, notes, queue, source }
  try {
    const result = await complete(run, await readAll(run))
    // The count as it was at first: of what was lost meanwhile, files that came before may have need.
    repository.latest.set(serverId, { backupId, generation, losses })
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
async function readAll(run: Run): Promise<HeldWorld> {
  const { request, signal } = run
  if (!request.holdWorld) {
    await walkAll(run)
    return NOBODY
  }
  const hold = await request.holdWorld(signal)
  let world: HeldWorld
  try {
    await walkAll(run)
  } finally {
    world = await hold.release()
  }
  return world
}

const NOBODY: HeldWorld = { how: 'idle', heldMs: null, warnings: [] }

async function walkAll({ sandbox, request, signal, pool, reader, notes, queue, source }: Run): Promise<void> {
  const rules = createIgnoreRules(request.ignored)
  const isLeftOut = (found: WalkEntry) => rules.isIgnored(found.path, found.stats.isDirectory())
  const enter = (found: WalkEntry) => !isLeftOut(found) && isReadable(found, notes)
  using tree = sandbox.openWalk('/', { sorted: true, enter, lookers: pool.lookers })
  const turn = createTurns(sandbox.share, signal)
  for (;;) {
    if (turn.due()) await turn.take()
    const looks = tree.waits()
    if (looks) await looks
    const found = tree.next()
    if (!found) break
    if (isLeftOut(found)) continue
    const waits = source.visit(found)
    if (waits) await waits
    if (queue.length % 256 === 0 || reader.isFull()) await queue.drain()
    while (reader.isFull() || queue.length > PENDING_AT_MOST) {
      await reader.step()
      await queue.drain()
    }
  }
  await reader.finish()
  await queue.drain()
}

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

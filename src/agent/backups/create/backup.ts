// Makes a backup: walks the tree beside the last manifest, has what changed read by the worker threads, and writes the
// new manifest in walk order. Order of writes: packs, the index, the manifest's part, the manifest; see docs/backup-format.md.
import { fstatSync } from 'node:fs'
import { createTurns, type Turns } from '../../../kit/waiting/turns.ts'
import { type Directory, usesDescriptors } from '../../files/sandbox/directory.ts'
import type { EntryStats } from '../../files/sandbox/looked.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import { isSomethingMountedBeneath, type WalkEntry } from '../../files/sandbox/walk.ts'
import { createHoleBudget } from '../../files/space/hole-budget.ts'
import type { HeldWorld, WorldHold } from '../../games/world-holds.ts'
import { type Chunk, createOrderKeys, type EntryCounts } from '../format/entries.ts'
import type { Manifest, ManifestMeta } from '../format/manifest.ts'
import { createManifest, type ManifestWriter } from '../format/manifest-writer.ts'
import { createManifestCursor } from '../store/manifest-cursor.ts'
import { deleteManifest } from '../store/manifests.ts'
import type { LatestBackup, Repository } from '../store/repository.ts'
import { createNotes, describedBy, isReadable, type Notes, newEntry } from '../tree/backup-entries.ts'
import { createIgnoreRules } from '../tree/ignore-rules.ts'
import { isAsItStands } from '../tree/unchanged.ts'
import type { Pool } from '../workers/pool.ts'
import { createChunkChecks } from './chunk-checks.ts'
import { createEntryQueue, type EntryQueue } from './entry-queue.ts'
import { createEntrySource, type EntrySource } from './entry-source.ts'
import { createFileReader, type FileReader } from './file-reader.ts'
import { createPackSink, type PackSink } from './pack-sink.ts'
import { createPassing, type PassingDeps } from './passing.ts'

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
  turn: Turns
  /** Whether all blocks of the last manifest are still known to be in the store. */
  isWhole: () => boolean
  manifest: ManifestWriter
  sink: PackSink
  reader: FileReader
  notes: Notes
  queue: EntryQueue
  source: EntrySource
  /** Undefined where everything is walked. */
  passing: Pick<PassingDeps, 'previous' | 'checks' | 'cursor'> | undefined
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
  const { serverId, backupId, ignored, bytesPerSecond } = request
  using directory = sandbox.openDirectory('/')
  const seen = { seenAt: Date.now(), stats: fstatSync(directory.fd, { bigint: true }) }
  const top = describedBy(newEntry('/', 'directory'), seen)
  const pool = repository.pool.of(serverId)
  const { generation } = repository
  const { losses } = repository.index
  const isWhole = wholeCheck(repository, serverId, previous)
  const sink = createPackSink(repository)
  const manifest = createManifest(repository.blobs, repository.sealer, request, previous, repository.manifestSizes)
  const notes = createNotes()
  const queue = createEntryQueue(manifest, report)
  const reader = createFileReader({ repository, pool, sink, signal, holes: createHoleBudget(), bytesPerSecond })
  const turn = createTurns(sandbox.share, signal)
  const mayPass = isWhole() && isListed(repository.latest.get(serverId), request, directory, seen.stats)
  using checks =
    previous && mayPass ? createChunkChecks({ top: directory, dev: seen.stats.dev, previous, pool, turn }) : undefined
  const before = previous && { places: previous.places, chunkAt: checks?.chunkAt ?? previous.chunkAt }
  const cursor = createManifestCursor(before, manifest.replace)
  const { usePatches: onPatched } = manifest
  const source = createEntrySource({ repository, serverId, cursor, onPatched, isWhole, sink, reader, notes, queue })
  const passing = previous && checks && { previous, checks, cursor }
  const made = { manifest, sink, reader, notes, queue, source }
  const run: Run = { sandbox, request, signal, startedAt, pool, turn, isWhole, passing, ...made }
  try {
    const world = await readAll(run)
    const isAll = notes.count() === 0
    const result = await complete(run, world)
    // The count as it was at first: of what was lost meanwhile, files that came before may have need.
    repository.latest.set(serverId, { backupId, generation, losses, ignored: isAll ? ignored : null, top })
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

/**
 * Whether all that the last backup does not list is known to be what these patterns say, so that what is new shows by the
 * directory that holds it. The first backup after a start finds that out anew.
 */
function isListed(
  latest: LatestBackup | undefined,
  { ignored }: BackupRequest,
  top: Directory,
  stats: EntryStats,
): boolean {
  if (latest?.ignored !== ignored || !isAsItStands(stats, latest.top)) return false
  return usesDescriptors(top) && !isSomethingMountedBeneath(top)
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

async function walkAll(run: Run): Promise<void> {
  const { sandbox, request, signal, pool, turn, isWhole, reader, notes, queue, source } = run
  const rules = createIgnoreRules(request.ignored)
  const isLeftOut = (found: WalkEntry) => rules.isIgnored(found.path, found.stats.isDirectory())
  const enter = (found: WalkEntry) => !isLeftOut(found) && isReadable(found, notes)
  using tree = sandbox.openWalk('/', { sorted: true, enter, lookers: pool.lookers })
  const keyOf = createOrderKeys()

  const isFull = () => reader.isFull() || queue.length > PENDING_AT_MOST

  async function relieve(): Promise<void> {
    while (isFull()) {
      await reader.step()
      await queue.drain()
    }
  }

  async function take(chunk: Chunk, counts: EntryCounts): Promise<boolean> {
    signal.throwIfAborted()
    if (!isWhole()) return false
    queue.pushChunk(chunk, counts)
    await queue.drain()
    await relieve()
    return true
  }

  const passing = run.passing && createPassing({ ...run.passing, tree, take })
  await passing?.begin()
  for (;;) {
    if (turn.due()) await turn.take()
    const looks = tree.waits()
    if (looks) await looks
    const found = tree.next()
    if (!found) break
    if (isLeftOut(found)) continue
    const key = keyOf(found.parent.path, found.name)
    const passes = passing?.over(key)
    if (passes && (await passes)) continue
    const waits = source.visit(found, key)
    if (waits) await waits
    if (queue.length % 256 === 0 || reader.isFull()) await queue.drain()
    if (isFull()) await relieve()
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

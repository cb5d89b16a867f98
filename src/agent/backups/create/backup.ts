// Makes a backup: walks the tree beside the last manifest, has what changed read by the worker threads, and writes the
// new manifest in walk order. Order of writes: packs, then the index, then the manifest; see docs/backup-format.md.
import type { BigIntStats } from 'node:fs'
import { type Descriptor, openDescriptor } from '../../../kit/descriptor.ts'
import { hasCode } from '../../../kit/errno.ts'
import { createTurns } from '../../../kit/turns.ts'
import { addressOf } from '../../files/sandbox/directory.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import type { WalkEntry } from '../../files/sandbox/walk.ts'
import { createHoleBudget } from '../../files/space/hole-budget.ts'
import { PRINTED_FROM_BYTES } from '../blocks/block-prints.ts'
import { eachBlock } from '../format/block-runs.ts'
import { type Entry, orderKey, type StoredEntry } from '../format/entries.ts'
import { BLOCK_BYTES } from '../format/format.ts'
import { createManifest, type Manifest, type ManifestMeta } from '../format/manifest.ts'
import { createManifestCursor } from '../store/manifest-cursor.ts'
import { deleteManifest } from '../store/manifests.ts'
import type { Repository } from '../store/repository.ts'
import { createNotes, entryOf, isReadable, statsOf } from '../tree/backup-entries.ts'
import { createIgnoreRules } from '../tree/ignore-rules.ts'
import { isUnchanged, isUntouched, OPEN_FILE, touchOf } from '../tree/unchanged.ts'
import { createFileReader, type ReadOutcome, TOO_SPARSE } from './file-reader.ts'
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

interface Pending {
  entry: Entry
  /** The entry, where it is that of the last manifest, unchanged. */
  kept: StoredEntry | undefined
  isReady: boolean
  /** Could not be read, or was gone. */
  isDropped: boolean
  firstLink: Pending | undefined
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
  const { generation } = repository
  const { losses } = repository.index
  const latest = repository.latest.get(request.serverId)
  const isWhole = () =>
    latest !== undefined &&
    latest.backupId === previous?.meta.backupId &&
    latest.generation === generation &&
    latest.losses === repository.index.losses
  const sink = createPackSink(repository)
  const manifest = await createManifest(repository.blobs, repository.sealer, request)
  const notes = createNotes()
  const counts = { fileCount: 0, directoryCount: 0, symlinkCount: 0, sizeBytes: 0 }
  const pending: Pending[] = []
  const links = new Map<string, Pending>()
  const cursor = createManifestCursor(previous)
  const rules = createIgnoreRules(request.ignored)
  const holes = createHoleBudget()
  const pool = repository.pool.of(request.serverId)
  const reader = createFileReader({ repository, pool, sink, signal, holes, bytesPerSecond: request.bytesPerSecond })

  async function drain(): Promise<void> {
    let done = 0
    for (let head = pending[done]; head?.isReady; head = pending[done]) {
      done++
      const entry = linked(head)
      if (!entry) continue
      if (entry.kind === 'file') counts.fileCount++
      else if (entry.kind === 'directory') counts.directoryCount++
      else counts.symlinkCount++
      if (entry.kind === 'file' && entry.hardLink === null) counts.sizeBytes += entry.sizeBytes
      const written = head.kept ? manifest.addAsItStands(head.kept) : manifest.add(entry)
      if (written) await written
    }
    pending.splice(0, done)
    report({ filesDone: counts.fileCount, bytesDone: counts.sizeBytes })
  }

  function settle(item: Pending, outcome: ReadOutcome): void {
    item.isReady = true
    const { path } = item.entry
    if (outcome.error !== null) {
      item.isDropped = true
      notes.warn(
        outcome.error === TOO_SPARSE
          ? `${path} consists of so much empty space (${outcome.stats.size} bytes in all) that it is not in the backup.`
          : `${path} could not be read (${outcome.error}) and is not in the backup.`,
      )
      return
    }
    if (outcome.attempts > 1) notes.changed()
    if (outcome.isTorn) notes.warn(`${path} kept changing while it was read; what was read last is in the backup.`)
    Object.assign(item.entry, statsOf(outcome.stats, outcome.seenAt), {
      content: outcome.content,
      sizeBytes: outcome.sizeBytes,
    })
    item.entry.isSettled &&= !outcome.isTorn
    if (outcome.prints) repository.prints.set(request.serverId, path, outcome.prints)
  }

  function addFile(found: WalkEntry, item: Pending): void {
    const size = found.stats.size
    if (size === 0n) {
      item.isReady = true
      return
    }
    let file: Descriptor
    try {
      file = openDescriptor(addressOf(found.parent, found.name), OPEN_FILE)
    } catch (error) {
      dropUnopened(item, error)
      return
    }
    const known = size < PRINTED_FROM_BYTES ? undefined : repository.prints.get(request.serverId, found.path)
    reader.add(file, found.stats, known, (outcome) => settle(item, outcome))
  }

  function dropUnopened(item: Pending, error: unknown): void {
    if (!hasCode(error, 'ENOENT', 'ELOOP', 'EACCES', 'EPERM', 'ENXIO', 'EIO')) throw error
    item.isReady = true
    item.isDropped = true
    const isGone = hasCode(error, 'ENOENT', 'ELOOP', 'ENXIO')
    if (isGone) notes.changed()
    notes.warn(
      isGone
        ? `${item.entry.path} vanished before it was read.`
        : `${item.entry.path} could not be read (${(error as NodeJS.ErrnoException).code}) and is not in the backup.`,
    )
  }

  function visit(found: WalkEntry): Promise<void> | undefined {
    const known = cursor.seek(orderKey(found.path))
    if (known instanceof Promise) return known.then((late) => take(found, late))
    take(found, known)
    return undefined
  }

  function take(found: WalkEntry, known: StoredEntry | undefined): void {
    const { stats } = found
    if (stats.isFile()) takeFile(found, known)
    else if (
      known &&
      !found.isMountPoint &&
      !found.isTooDeep &&
      isAlike(stats, known) &&
      isUntouched(touchOf(stats), known)
    )
      push(known, known)
    else {
      const entry = entryOf(found, notes)
      if (entry) push(entry)
    }
  }

  function push(entry: Entry, kept?: StoredEntry): void {
    pending.push({ entry, kept, isReady: true, isDropped: false, firstLink: undefined })
  }

  function takeFile(found: WalkEntry, known: StoredEntry | undefined): void {
    const { size, mtimeNs, ctimeNs, ino: inode, nlink, dev } = found.stats
    const isKnown =
      known !== undefined &&
      isUnchanged({ sizeBytes: Number(size), mtimeNs, ctimeNs, inode }, known) &&
      (isWhole() || isStored(sink, known))
    if (isKnown && nlink === 1n && known.hardLink === null) {
      push(known, known)
      return
    }
    const entry = entryOf(found, notes)
    if (!entry) return
    const firstLink = nlink > 1n ? links.get(`${dev} ${inode}`) : undefined
    const item: Pending = { entry, kept: undefined, isReady: firstLink !== undefined, isDropped: false, firstLink }
    pending.push(item)
    if (firstLink) return
    if (nlink > 1n) links.set(`${dev} ${inode}`, item)
    if (isKnown) {
      entry.content = known.content
      item.isReady = true
    } else addFile(found, item)
  }

  const isLeftOut = (found: WalkEntry) => rules.isIgnored(found.path, found.stats.isDirectory())

  async function walkAll(): Promise<void> {
    const enter = (found: WalkEntry) => !isLeftOut(found) && isReadable(found, notes)
    using tree = sandbox.openWalk('/', { sorted: true, enter })
    const turn = createTurns(sandbox.share, signal)
    for (let found = tree.next(); found; found = tree.next()) {
      if (turn.due()) await turn.take()
      if (isLeftOut(found)) continue
      const waits = visit(found)
      if (waits) await waits
      if (pending.length % 256 === 0 || reader.isFull()) await drain()
      while (reader.isFull() || pending.length > PENDING_AT_MOST) {
        await reader.step()
        await drain()
      }
    }
    await reader.finish()
    await drain()
  }

  try {
    await walkAll()
    await sink.finish()
    signal.throwIfAborted()
    const { backupId, serverId, name, serverName, createdAt, ignored, isLocked } = request
    const meta = {
      ...(serverName === undefined ? {} : { serverName }),
      ...{ backupId, serverId, name, createdAt, startedAt, completedAt: Date.now(), ignored, isLocked },
      ...{ consistency: notes.consistency(), ...counts, storedBytes: sink.storedBytes },
      ...{ warnings: notes.warnings, warningCount: notes.count() },
    }
    const { checksum } = await manifest.finish(meta)
    await sink.publish()
    // The count as it was at first: of what was lost meanwhile, files that came before may have need.
    repository.latest.set(serverId, { backupId, generation, losses })
    return { meta: { version: 1, ...meta }, checksum }
  } catch (error) {
    await reader.abandon()
    await manifest.abort().catch(() => {})
    // It may be there where only the sync of its directory failed: never a manifest without its packs.
    const isGone = await deleteManifest(repository, request).then(
      () => true,
      () => false,
    )
    await sink.abort(isGone)
    throw error
  }
}

/** Both a directory, or both a symlink. */
function isAlike(now: BigIntStats, { kind }: Entry): boolean {
  return kind === 'directory' ? now.isDirectory() : kind === 'symlink' && now.isSymbolicLink()
}

/** A file that needs a damaged or missing block is read again, which heals the block. */
function isStored(sink: PackSink, known: StoredEntry): boolean {
  let isWhole = true
  let length = 0
  eachBlock(known, (idAt) => {
    length += BLOCK_BYTES
    if (idAt >= 0 && !sink.holds(known.content, idAt)) isWhole = false
  })
  return isWhole && length >= known.sizeBytes
}

/** Content, size and times of a further link are those of the first, which stands before it. */
function linked(item: Pending): Entry | undefined {
  const first = item.firstLink
  if (!first) return item.isDropped ? undefined : item.entry
  if (first.isDropped) return undefined
  return { ...first.entry, path: item.entry.path, hardLink: first.entry.path }
}

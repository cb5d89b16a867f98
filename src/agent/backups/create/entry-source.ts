// For each entry the walk finds: reused from the last manifest, or described anew and, if it is a file whose content is
// not known, read.
import { fstatSync } from 'node:fs'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import { addressOf } from '../../files/sandbox/directory.ts'
import type { WalkEntry } from '../../files/sandbox/walk.ts'
import { PRINTED_FROM_BYTES } from '../blocks/block-prints.ts'
import { createPriorBlocks, type PriorBlocks } from '../blocks/prior-blocks.ts'
import { blockCountOf, visitNeeded } from '../format/block-runs.ts'
import type { Entry, StoredEntry } from '../format/entries.ts'
import { BLOCK_BYTES } from '../format/format.ts'
import type { ManifestCursor } from '../store/manifest-cursor.ts'
import type { Repository } from '../store/repository.ts'
import { describedBy, entryOf, mayHideWrites, type Notes } from '../tree/backup-entries.ts'
import { isAsItStands, isUnchangedFile, OPEN_FILE } from '../tree/unchanged.ts'
import { errorCode } from '../workers/worker-jobs.ts'
import type { EntryQueue, QueuedEntry } from './entry-queue.ts'
import type { ReadAs } from './file-part.ts'
import { type FileReader, TOO_SPARSE } from './file-reader.ts'
import type { JoinedReads } from './joined-reads.ts'
import type { PackSink } from './pack-sink.ts'

/** What opening a file says where somebody has taken it away, or put something else in its place. */
const GONE = ['ENOENT', 'ELOOP', 'ENXIO']
const UNREADABLE = ['EACCES', 'EPERM', 'EIO']
/** Files of a backup that are written to the disk before they are read: each takes up to some milliseconds. */
const FLUSHES_AT_MOST = 64

export interface EntrySourceDeps {
  repository: Repository
  serverId: string
  /** Through the last manifest. */
  cursor: ManifestCursor
  /** A directory is as it was. */
  onKept: (key: string) => void
  /** A block is listed as a patch of another. */
  onPatched: () => void
  /** Whether all blocks of the last manifest are known to be in the store, so that none has to be looked up. */
  isWhole: () => boolean
  sink: PackSink
  reader: FileReader
  notes: Notes
  queue: EntryQueue
}

export interface EntrySource {
  /** Puts the entry into the queue. `key`: the order key of its path. Undefined where it did so at once. */
  visit(found: WalkEntry, key: string): Promise<void> | undefined
  /** The same, of one that the last manifest is known to list. */
  revisit(found: WalkEntry, known: StoredEntry): void
  /** Puts an entry of the last manifest into the queue, as it stands. */
  keep(entry: StoredEntry): void
}

export function createEntrySource(deps: EntrySourceDeps): EntrySource {
  const { cursor, onKept, sink, notes, queue, isWhole } = deps
  const links = new Map<string, FirstLink>()
  const read = createReadStarter(deps)

  function take(found: WalkEntry, key: string, known: StoredEntry | undefined): void {
    if (found.stats.isFile()) takeFile(found, key, known)
    else if (known && !found.isMountPoint && !found.isTooDeep && isAsItStands(found.stats, known)) {
      push(known, key, known)
      if (known.kind === 'directory') onKept(key)
    } else {
      const entry = entryOf(found, notes)
      if (entry) push(entry, key)
    }
  }

  function push(entry: Entry, key: string, kept?: StoredEntry): void {
    queue.push({ entry, key, kept, isReady: true, isDropped: false, firstLink: undefined })
  }

  function takeFile(found: WalkEntry, key: string, known: StoredEntry | undefined): void {
    const { nlink } = found.stats
    const isKnown = known !== undefined && isUnchangedFile(found.stats, known) && (isWhole() || isStored(sink, known))
    if (isKnown && nlink === 1n && known.hardLink === null) {
      push(known, key, known)
      return
    }
    const entry = entryOf(found, notes)
    if (!entry) return
    const firstLink = nlink > 1n ? firstLinkOf(found) : undefined
    const queued: QueuedEntry = {
      entry,
      key,
      kept: undefined,
      isReady: firstLink !== undefined,
      isDropped: false,
      firstLink,
    }
    queue.push(queued)
    if (firstLink) return
    let opened: Opened | undefined
    if (isKnown) {
      entry.content = known.content
      queued.isReady = true
    } else opened = read(found, queued, known)
    if (nlink > 1n && opened?.isWhatWasSeen !== false)
      links.set(inodeKeyOf(found), { queued, changedNs: found.stats.ctimeNs, file: opened?.file })
  }

  /** The number of an inode that was freed may be used again at once, for another file. */
  function firstLinkOf(found: WalkEntry): QueuedEntry | undefined {
    const first = links.get(inodeKeyOf(found))
    if (!first) return undefined
    const { ctimeNs } = found.stats
    const isSame = first.changedNs === ctimeNs || (first.file?.isOpen && statsOf(first.file).ctimeNs === ctimeNs)
    if (isSame) return first.queued
    notes.changed()
    notes.warn(
      `${found.path} and ${first.queued.entry.path} changed: if they are names of one file, they are two in the backup.`,
    )
    return undefined
  }

  return {
    visit(found, key) {
      const known = cursor.seek(key)
      if (known instanceof Promise) return known.then((late) => take(found, key, late))
      take(found, key, known)
      return undefined
    },
    revisit: (found, known) => take(found, known.key, known),
    keep: (entry) => push(entry, entry.key, entry),
  }
}

interface FirstLink {
  queued: QueuedEntry
  /** The change time that it was seen with. */
  changedNs: bigint
  /** Where it is being read. While it is open, nobody else has the number of its inode. */
  file: Descriptor | undefined
}

interface Opened {
  file: Descriptor | undefined
  /** Not where another file had the name by then. */
  isWhatWasSeen: boolean
}

const NOT_OPENED: Opened = { file: undefined, isWhatWasSeen: true }

const inodeKeyOf = ({ stats: { dev, ino } }: WalkEntry) => `${dev} ${ino}`
const statsOf = ({ fd }: Descriptor) => fstatSync(fd, { bigint: true })

/** Has the files of queued entries read, and completes the entries by what was read. One with several links is opened at once. */
function createReadStarter({ repository, serverId, reader, notes, onPatched }: EntrySourceDeps) {
  let flushes = FLUSHES_AT_MOST

  function settle(queued: QueuedEntry, outcome: JoinedReads, as: ReadAs): void {
    queued.isReady = true
    const { path } = queued.entry
    if (outcome.error !== null && outcome.isUnopened) {
      dropUnopened(queued, outcome.error)
      return
    }
    if (outcome.error !== null) {
      queued.isDropped = true
      notes.warn(
        outcome.error === TOO_SPARSE
          ? `${path} consists of so much empty space (${as.stats.size} bytes in all) that it is not in the backup.`
          : `${path} could not be read (${outcome.error}) and is not in the backup.`,
      )
      return
    }
    if (as.attempts > 1) notes.changed()
    if (outcome.isTorn) notes.warn(`${path} kept changing while it was read; what was read last is in the backup.`)
    const { entry } = queued
    // Otherwise it is described by these stats already.
    if (as.attempts > 1) describedBy(entry, as)
    entry.content = outcome.content
    entry.sizeBytes = outcome.sizeBytes
    entry.isSettled &&= !outcome.isTorn && (!mayHideWrites(as) || (as.isFlushed && as.attempts === 1))
    if (outcome.isPatched) onPatched()
    if (outcome.prints) repository.prints.set(serverId, path, outcome.prints)
  }

  function dropUnopened(queued: QueuedEntry, code: string): void {
    const isGone = GONE.includes(code)
    if (!isGone && !UNREADABLE.includes(code))
      throw Object.assign(new Error(`a file was not opened: ${code}`), { code })
    queued.isReady = true
    queued.isDropped = true
    if (isGone) notes.changed()
    notes.warn(
      isGone
        ? `${queued.entry.path} vanished before it was read.`
        : `${queued.entry.path} could not be read (${code}) and is not in the backup.`,
    )
  }

  /** Otherwise it is read again by the next backup. */
  function takesFlush(found: WalkEntry, { entry }: QueuedEntry): boolean {
    if (!entry.isSettled || flushes === 0 || !mayHideWrites(found)) return false
    flushes--
    return true
  }

  return (found: WalkEntry, queued: QueuedEntry, before: StoredEntry | undefined): Opened => {
    const { nlink, ino } = found.stats
    const { sizeBytes } = queued.entry
    if (sizeBytes === 0) {
      queued.isReady = true
      return NOT_OPENED
    }
    const done = (outcome: JoinedReads, as: ReadAs) => settle(queued, outcome, as)
    const isSmall = sizeBytes < PRINTED_FROM_BYTES
    const mustFlush = takesFlush(found, queued)
    if (isSmall && nlink === 1n && !mustFlush) {
      reader.addNamed(found, done)
      return NOT_OPENED
    }
    let file: Descriptor
    try {
      file = openDescriptor(addressOf(found.parent, found.name), OPEN_FILE)
    } catch (error) {
      dropUnopened(queued, errorCode(error))
      return { file: undefined, isWhatWasSeen: false }
    }
    const isWhatWasSeen = nlink === 1n || statsOf(file).ino === ino
    const prior = isSmall || !before ? undefined : priorOf(repository, before)
    const known = isSmall ? undefined : repository.prints.get(serverId, found.path)
    reader.add(file, found, { known, prior, mustFlush }, done)
    return { file, isWhatWasSeen }
  }
}

/** Undefined where it was no file. */
function priorOf({ index, isAway }: Repository, { kind, content }: StoredEntry): PriorBlocks | undefined {
  return kind === 'file' ? createPriorBlocks(index, (packId) => !isAway(packId), content) : undefined
}

/** A file that needs a damaged or missing block is read again, which heals the block. */
function isStored(sink: PackSink, { content, sizeBytes }: StoredEntry): boolean {
  let isWhole = true
  visitNeeded(content, (idAt) => {
    if (!sink.holds(content, idAt)) isWhole = false
  })
  return isWhole && blockCountOf(content) * BLOCK_BYTES >= sizeBytes
}

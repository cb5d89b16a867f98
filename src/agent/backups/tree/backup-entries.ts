// What a walk finds, as entries of a manifest, and what a backup has to say about it.
import { accessSync, constants } from 'node:fs'
import type { Consistency } from '../../../contract/agent/agent-backups.ts'
import { MAX_DEPTH } from '../../../contract/fixed-limits.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { addressOf, readlinkAt } from '../../files/sandbox/directory.ts'
import { keptModeOf } from '../../files/sandbox/ownership.ts'
import type { WalkEntry } from '../../files/sandbox/walk.ts'
import type { HeldWorld } from '../../games/world-holds.ts'
import { type Entry, NO_CONTENT } from '../format/entries.ts'

/** Equal times prove equal content only for a file that had been left alone for longer than any clock's tick. */
const SETTLED_NS = 1_000_000_000n
/**
 * A program that has mapped a page of a file changes the file's times by its first write to the page, and by none after it until the
 * kernel has written the page to the disk, which it does after 30 s by default.
 */
const WRITTEN_BACK_NS = 60_000_000_000n
const WARNINGS_KEPT = 200

export function createNotes() {
  const warnings: string[] = []
  let count = 0
  let isChanged = false
  let isAll = true
  return {
    warnings,
    count: () => count,
    /** Whether everything is in the backup that was there when it came to it. */
    isAll: () => isAll && count === 0,
    /** A game that holds its world still goes on writing its log: that alone says nothing about the world. */
    consistency({ how }: Pick<HeldWorld, 'how'>): Consistency {
      if (how === 'still') return 'quiesced'
      if (how === 'loose' || isChanged) return 'live'
      return how === 'saved' ? 'quiesced' : 'offline'
    },
    changed() {
      isChanged = true
    },
    /** Something is gone, or something else, since it was looked at first: the next backup looks at everything. */
    leftOut() {
      isChanged = true
      isAll = false
    },
    warn(sentence: string) {
      count++
      if (warnings.length < WARNINGS_KEPT) warnings.push(sentence)
    },
  }
}

export type Notes = ReturnType<typeof createNotes>

/** A directory that cannot be listed is a warning, not the end of the backup. */
export function isReadable(found: WalkEntry, notes: Notes): boolean {
  try {
    accessSync(addressOf(found.parent, found.name), constants.R_OK | constants.X_OK)
    return true
  } catch (error) {
    if (!hasCode(error, 'EACCES', 'ENOENT', 'ELOOP', 'ENOTDIR', 'EPERM')) throw error
    notes.warn(`${found.path} could not be listed (${(error as NodeJS.ErrnoException).code}).`)
    return false
  }
}

export function entryOf(found: WalkEntry, notes: Notes): Entry | undefined {
  const { stats, path } = found
  if (stats.isFile()) return describedBy(newEntry(path, 'file'), found)
  if (stats.isDirectory()) {
    if (found.isTooDeep) notes.warn(`${path} holds more than ${MAX_DEPTH} levels; what is deeper is not in the backup.`)
    if (found.isMountPoint) notes.warn(`${path} is another file system; what it holds is not in the backup.`)
    return describedBy(newEntry(path, 'directory'), found)
  }
  if (!stats.isSymbolicLink()) {
    notes.warn(`${path} is neither a file, a directory nor a symbolic link, and is not in the backup.`)
    return undefined
  }
  try {
    const entry = newEntry(path, 'symlink')
    entry.target = readlinkAt(found.parent, found.name)
    return describedBy(entry, found)
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'EINVAL')) throw error
    notes.changed()
    notes.warn(`${path} vanished before it was read.`)
    return undefined
  }
}

/** With all that an entry has, at once: an object that grows later takes more memory, and there is one for each file. */
export function newEntry(path: string, kind: Entry['kind']): Entry {
  return {
    path,
    kind,
    mode: 0,
    uid: 0,
    gid: 0,
    mtimeNs: 0n,
    ctimeNs: 0n,
    inode: 0n,
    sizeBytes: 0,
    isSettled: false,
    target: null,
    hardLink: null,
    content: NO_CONTENT,
  }
}

/** Whether its times may hide writes to a mapped page: see `WRITTEN_BACK_NS`. */
export function mayHideWrites({ stats, seenAt }: Pick<WalkEntry, 'stats' | 'seenAt'>): boolean {
  const { writtenBackBefore } = boundsAt(seenAt)
  return stats.mtimeNs > writtenBackBefore || stats.ctimeNs > writtenBackBefore
}

/** Many are seen at the same time. */
let last = { seenAt: -1, settledBefore: 0n, writtenBackBefore: 0n }

function boundsAt(seenAt: number): typeof last {
  if (last.seenAt === seenAt) return last
  const seenNs = BigInt(seenAt) * 1_000_000n
  last = { seenAt, settledBefore: seenNs - SETTLED_NS, writtenBackBefore: seenNs - WRITTEN_BACK_NS }
  return last
}

/** The entry, as those stats say. */
export function describedBy(entry: Entry, { stats, seenAt }: Pick<WalkEntry, 'stats' | 'seenAt'>): Entry {
  const { mtimeNs, ctimeNs } = stats
  const { settledBefore } = boundsAt(seenAt)
  entry.mode = keptModeOf(stats, entry.kind === 'directory')
  entry.uid = Number(stats.uid)
  entry.gid = Number(stats.gid)
  entry.mtimeNs = mtimeNs
  entry.ctimeNs = ctimeNs
  entry.inode = stats.ino
  if (entry.kind === 'file') entry.sizeBytes = Number(stats.size)
  entry.isSettled = mtimeNs < settledBefore && ctimeNs < settledBefore
  return entry
}

// How far a change got, judged only by the disk: for changes that failed, and for those that a crash interrupted. A
// rename keeps the inode, so the inode at the target says whether the file got there.
import { type BigIntStats, readdirSync } from 'node:fs'
import { isFailure } from '../../../contract/errors.ts'
import { pathNames } from '../../../kit/path-names.ts'
import type { Outcome } from '../../journal/journal.ts'
import { describeAt } from '../reading/entries.ts'
import { openChild, openRoot, statsIfThere, unlinkAt } from '../sandbox/directory.ts'
import { nameFromLatin1 } from '../sandbox/names.ts'
import { childPath, splitPath } from '../sandbox/paths.ts'
import type { ServerFiles } from '../server-files.ts'
import { parseItemId, slotName } from '../trash/trash-records.ts'

/** Inodes are decimal digits, paths as the sandbox knows them. */
export type Probe =
  | FolderProbe
  | WrittenProbe
  | UploadedProbe
  | MovedProbe
  | CopiedProbe
  | RestoredProbe
  | DeletedProbe
  | EmptiedProbe

/** The directories that were missing, the outermost first: the last is the one that was asked for. */
export type FolderProbe = { op: 'folder'; missing: string[] }
export type WrittenProbe = { op: 'written'; file: PlacedFile }
export type UploadedProbe = { op: 'uploaded'; directory: string; files: PlacedFile[] }
export type MovedProbe = { op: 'moved'; moves: { from: string; to: string; inode: string }[] }
/** `directory` is where it appears, under a name that is free by then. */
export type CopiedProbe = { op: 'copied'; from: string; directory: string; inode: string }
export type RestoredProbe = { op: 'restored'; trashId: string; directory: string; inode: string }
/** `items` are the entries as the caller wrote them, in the order of their slots. */
export type DeletedProbe = { op: 'deleted'; root: string; batch: string; items: string[] }
export type EmptiedProbe = { op: 'emptied'; batches: string[] }

export interface PlacedFile {
  path: string
  inode: string
  sizeBytes: number
}

/** Entries name no more files than this; they count all. */
const NAMES_TOLD = 100

export const inodeOf = (stats: BigIntStats) => stats.ino.toString()

const SETTLERS: { [P in Probe as P['op']]: (server: ServerFiles, probe: P) => Outcome | undefined } = {
  folder(server, { missing }) {
    const made = missing.filter((path) => server.files.lstatIfThere(splitPath(path))?.isDirectory())
    const path = made.at(-1)
    if (path === undefined) return undefined
    const isWhole = made.length === missing.length
    return { properties: { path }, ...(isWhole ? { answer: { entry: entryAt(server, path), created: true } } : {}) }
  },

  written: (server, { file }) =>
    isAt(server, file.path, file.inode) ? { properties: { path: file.path, sizeBytes: file.sizeBytes } } : undefined,

  uploaded(server, { directory, files }) {
    const placed = files.filter(({ path, inode }) => isAt(server, path, inode))
    return placed.length > 0 ? { properties: uploadProperties(directory, placed, 'multipart') } : undefined
  },

  moved(server, { moves }) {
    const done = moves.filter(({ to, inode }) => isAt(server, to, inode))
    if (done.length === 0) return undefined
    for (const { from, inode } of done) dropSecondName(server, from, inode)
    const isWhole = done.length === moves.length
    const answer = { data: done.map(({ to }) => entryAt(server, to)) }
    return { properties: moveProperties(done), ...(isWhole ? { answer } : {}) }
  },

  copied(server, { from, directory, inode }) {
    const to = findIn(server, directory, inode)
    return to === undefined ? undefined : { properties: { from, to }, answer: entryAt(server, to) }
  },

  restored(server, { trashId, directory, inode }) {
    const path = findIn(server, directory, inode)
    if (path === undefined) return undefined
    dropSlot(server, trashId, inode)
    return { properties: { trashId, path }, answer: entryAt(server, path) }
  },

  deleted(server, { root, batch, items }) {
    using trash = openRoot(server.folders.trash)
    if (!statsIfThere(trash, batch)) return undefined
    using folder = openChild(trash, batch)
    const deleted = items.filter((_, index) => statsIfThere(folder, slotName(index)) !== undefined)
    return deleted.length > 0 ? { properties: deleteProperties(root, deleted) } : undefined
  },

  emptied(server, { batches }) {
    using trash = openRoot(server.folders.trash)
    const isGone = (batch: string) => statsIfThere(trash, batch) === undefined
    // How much it was is not known any more: it went with the process that counted.
    return batches.some(isGone) ? { properties: { freedBytes: null } } : undefined
  },
}

export function settleProbe<P extends Probe>(server: ServerFiles, probe: P): Outcome | undefined {
  const settler = SETTLERS[probe.op] as (server: ServerFiles, probe: P) => Outcome | undefined
  return settler(server, probe)
}

export function uploadProperties(directory: string, files: { path: string; sizeBytes: number }[], protocol: string) {
  return {
    directory,
    files: files.slice(0, NAMES_TOLD).map(({ path }) => nameWithin(directory, path)),
    count: files.length,
    sizeBytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    protocol,
  }
}

export function moveProperties(moves: { from: string; to: string }[]) {
  return { moves: moves.slice(0, NAMES_TOLD).map(({ from, to }) => ({ from, to })), count: moves.length }
}

export function deleteProperties(root: string, deleted: string[]) {
  return { root, files: deleted.slice(0, NAMES_TOLD), count: deleted.length }
}

/** As the sender named it: what comes after the directory. */
function nameWithin(directory: string, path: string): string {
  const base = `/${pathNames(directory).join('/')}`
  return base === '/' ? path.slice(1) : path.slice(base.length + 1)
}

function isAt({ files }: ServerFiles, path: string, inode: string): boolean {
  const stats = files.lstatIfThere(splitPath(path))
  return stats !== undefined && inodeOf(stats) === inode
}

function entryAt({ files }: ServerFiles, path: string) {
  using place = files.openPlace(splitPath(path))
  return describeAt(place.parent, place.name)
}

function findIn({ files }: ServerFiles, path: string, inode: string): string | undefined {
  try {
    using directory = files.openDirectory(splitPath(path))
    for (const name of readdirSync(directory.address, { encoding: 'latin1' }).map(nameFromLatin1)) {
      const stats = statsIfThere(directory, name)
      if (stats && inodeOf(stats) === inode) return childPath(path, name)
    }
    return undefined
  } catch (error) {
    if (isFailure(error, 'not_found')) return undefined
    throw error
  }
}

/** A file that is moved has both names for an instant: one that a crash left with both loses the old one. */
function dropSecondName(server: ServerFiles, path: string, inode: string): void {
  if (!isAt(server, path, inode)) return
  using place = server.files.openPlace(splitPath(path))
  unlinkAt(place.parent, place.name)
}

function dropSlot({ folders }: ServerFiles, trashId: string, inode: string): void {
  const item = parseItemId(trashId)
  using trash = openRoot(folders.trash)
  if (!item || !statsIfThere(trash, item.batch)) return
  using folder = openChild(trash, item.batch)
  const stats = statsIfThere(folder, item.slot)
  if (stats && inodeOf(stats) === inode) unlinkAt(folder, item.slot)
}

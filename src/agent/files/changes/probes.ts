// How far a change got, judged only by the disk: for changes that failed, and for those that a crash interrupted. A
// rename keeps the inode, so the inode at the target says whether the file got there.
import { type BigIntStats, opendirSync } from 'node:fs'
import type { FileEntry } from '../../../contract/agent/agent-files.ts'
import { isFailure } from '../../../contract/errors.ts'
import { pathNames } from '../../../contract/files/path-rules.ts'
import { createTurns, type Turns } from '../../../kit/waiting/turns.ts'
import type { Outcome } from '../../journal/journal.ts'
import { describe } from '../reading/entries.ts'
import { openChild, openRoot, statsIfThere, unlinkAt } from '../sandbox/directory.ts'
import { nameFromLatin1 } from '../sandbox/names.ts'
import { hasPermissions } from '../sandbox/ownership.ts'
import { splitPath } from '../sandbox/paths.ts'
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
  | ModeProbe

/** The directories that were missing, the outermost first: the last is the one that was asked for. */
export type FolderProbe = { op: 'folder'; missing: string[] }
export type WrittenProbe = { op: 'written'; file: PlacedFile }
export type UploadedProbe = { op: 'uploaded'; directory: string; files: PlacedFile[] }
/** `isSameFile`: the target was another name of the same file, so only that the old one is gone shows the move. */
export type MovedProbe = { op: 'moved'; moves: { from: string; to: string; inode: string; isSameFile?: boolean }[] }
/** `directory` is where it appears, under a name that is free by then. */
export type CopiedProbe = { op: 'copied'; from: string; directory: string; inode: string }
/** `had`: the names in the directory that the file had before; intents of earlier versions do not say. */
export type RestoredProbe = { op: 'restored'; trashId: string; directory: string; inode: string; had?: string[] }
/** `items` are the entries as the caller wrote them, in the order of their slots. */
export type DeletedProbe = { op: 'deleted'; root: string; batch: string; items: string[] }
export type EmptiedProbe = { op: 'emptied'; batches: string[] }
/** Everything that was named; what had the mode before is no change. */
export type ModeProbe = { op: 'mode'; mode: number; items: { path: string; isChange: boolean }[] }

export interface PlacedFile {
  path: string
  inode: string
  sizeBytes: number
}

/** Entries name no more files than this; they count all. */
const NAMES_TOLD = 100
const READ_AHEAD = 512

export const inodeOf = (stats: BigIntStats) => stats.ino.toString()

type Settler<P> = (server: ServerFiles, probe: P, turn: Turns) => Promise<Outcome | undefined>

// Others have their turn between any two things that are looked at: what belongs together is one look.
const SETTLERS: { [P in Probe as P['op']]: Settler<P> } = {
  // In one turn: nothing on the disk tells a folder made by this change from one that somebody else makes meanwhile.
  async folder(server, { missing }) {
    const made: FileEntry[] = []
    for (const path of missing) {
      const entry = entryAt(server, path, (stats) => stats.isDirectory())
      if (entry) made.push(entry)
    }
    const entry = made.at(-1)
    if (!entry) return undefined
    const isWhole = made.length === missing.length
    return { properties: { path: entry.path }, ...(isWhole ? { answer: { entry, created: true } } : {}) }
  },

  written: async (server, { file }) =>
    isAt(server, file.path, file.inode) ? { properties: { path: file.path, sizeBytes: file.sizeBytes } } : undefined,

  async uploaded(server, { directory, files }, turn) {
    const placed: PlacedFile[] = []
    for await (const file of inTurns(files, turn)) if (isAt(server, file.path, file.inode)) placed.push(file)
    return placed.length > 0 ? { properties: uploadProperties(directory, placed, 'multipart') } : undefined
  },

  async moved(server, { moves }, turn) {
    const done: MovedProbe['moves'] = []
    const data: FileEntry[] = []
    for await (const moved of inTurns(moves, turn)) {
      const entry = entryAt(server, moved.to, has(moved.inode))
      if (!entry || (moved.isSameFile && isAt(server, moved.from, moved.inode))) continue
      dropSecondName(server, moved.from, moved.inode)
      done.push(moved)
      data.push(entry)
    }
    if (done.length === 0) return undefined
    const isWhole = done.length === moves.length
    return { properties: moveProperties(done), ...(isWhole ? { answer: { data } } : {}) }
  },

  async copied(server, { from, directory, inode }, turn) {
    const entry = await findIn(server, directory, inode, turn)
    return entry && { properties: { from, to: entry.path }, answer: entry }
  },

  async restored(server, { trashId, directory, inode, had }, turn) {
    const entry = await findIn(server, directory, inode, turn, had)
    if (!entry) return undefined
    dropSlot(server, trashId, inode)
    return { properties: { trashId, path: entry.path }, answer: entry }
  },

  async deleted(server, { root, batch, items }, turn) {
    using trash = openRoot(server.folders.trash)
    if (!statsIfThere(trash, batch)) return undefined
    using folder = openChild(trash, batch)
    const deleted: string[] = []
    for await (const [index, item] of inTurns(items.entries(), turn))
      if (statsIfThere(folder, slotName(index))) deleted.push(item)
    return deleted.length > 0 ? { properties: deleteProperties(root, deleted) } : undefined
  },

  async emptied(server, { batches }) {
    using trash = openRoot(server.folders.trash)
    const isGone = (batch: string) => statsIfThere(trash, batch) === undefined
    // How much it was is not known any more: it went with the process that counted.
    return batches.some(isGone) ? { properties: { freedBytes: null } } : undefined
  },

  async mode(server, { mode, items }, turn) {
    const isSet = (stats: BigIntStats) => !stats.isSymbolicLink() && hasPermissions(stats, mode)
    const changed: string[] = []
    const data: FileEntry[] = []
    for await (const { path, isChange } of inTurns(items, turn)) {
      const entry = entryAt(server, path, isSet)
      if (entry) data.push(entry)
      if (entry && isChange) changed.push(path)
    }
    if (changed.length === 0) return undefined
    const isWhole = data.length === items.length
    return { properties: modeProperties(changed, mode), ...(isWhole ? { answer: { data } } : {}) }
  },
}

export function settleProbe<P extends Probe>(server: ServerFiles, probe: P): Promise<Outcome | undefined> {
  const settler = SETTLERS[probe.op] as Settler<P>
  return settler(server, probe, createTurns(server.files.share))
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

export function modeProperties(paths: string[], mode: number) {
  return { paths: paths.slice(0, NAMES_TOLD), count: paths.length, mode: mode.toString(8).padStart(4, '0') }
}

/** As the sender named it: what comes after the directory. */
function nameWithin(directory: string, path: string): string {
  const base = `/${pathNames(directory).join('/')}`
  return base === '/' ? path.slice(1) : path.slice(base.length + 1)
}

const has = (inode: string) => (stats: BigIntStats) => inodeOf(stats) === inode

function isAt({ files }: ServerFiles, path: string, inode: string): boolean {
  const stats = thereOrNot(() => files.lstat(splitPath(path)))
  return stats !== undefined && inodeOf(stats) === inode
}

/** Undefined where there is nothing, or something else. */
function entryAt(
  { files }: ServerFiles,
  path: string,
  isMeant: (stats: BigIntStats) => boolean,
): FileEntry | undefined {
  using place = thereOrNot(() => files.openPlace(splitPath(path)))
  const stats = place && statsIfThere(place.parent, place.name)
  return stats && isMeant(stats) ? describe(place.parent, place.name, stats) : undefined
}

/** Under whichever name, but for those that it had before. */
async function findIn(
  server: ServerFiles,
  path: string,
  inode: string,
  turn: Turns,
  had: readonly string[] = [],
): Promise<FileEntry | undefined> {
  for await (const { directory, name, stats } of namesOf(server, path, inode, turn))
    if (!had.includes(name)) return describe(directory, name, stats)
  return undefined
}

/** The names in the directory that the file has, which are several where there are hard links. */
export async function namesIn(server: ServerFiles, path: string, inode: string): Promise<string[]> {
  const names = namesOf(server, path, inode, createTurns(server.files.share))
  return await Array.fromAsync(names, ({ name }) => name)
}

async function* namesOf({ files }: ServerFiles, path: string, inode: string, turn: Turns) {
  using directory = thereOrNot(() => files.openDirectory(splitPath(path)))
  if (!directory) return
  using names = opendirSync(directory.address, { encoding: 'latin1', bufferSize: READ_AHEAD })
  for (let found = names.readSync(); found; found = names.readSync()) {
    if (turn.due()) await turn.take()
    const name = nameFromLatin1(found.name)
    const stats = statsIfThere(directory, name)
    if (stats && inodeOf(stats) === inode) yield { directory, name, stats }
  }
}

/** Where the way is cut off, by a symlink or a file or whatever has come into it, there is nothing of ours at its end. */
export function thereOrNot<T>(open: () => T): T | undefined {
  try {
    return open()
  } catch (error) {
    if (isFailure(error, 'not_found') || isFailure(error, 'invalid_path')) return undefined
    throw error
  }
}

async function* inTurns<T>(items: Iterable<T>, turn: Turns): AsyncGenerator<T> {
  for (const item of items) {
    if (turn.due()) await turn.take()
    yield item
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

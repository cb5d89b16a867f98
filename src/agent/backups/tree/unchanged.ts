// How a file is opened for reading, and whether something on disk matches its manifest entry without reading it.
import { constants } from 'node:fs'
import type { EntryStats } from '../../files/sandbox/looked.ts'
import type { Entry } from '../format/entries.ts'

/** A file that the walk has seen as one: nothing is followed, and a pipe put in its place does not block. */
export const OPEN_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

const touchOf = ({ mtimeNs, ctimeNs, ino: inode }: EntryStats): Touch => ({ mtimeNs, ctimeNs, inode })

type Touch = Pick<Entry, 'mtimeNs' | 'ctimeNs' | 'inode'>

/** The very thing that it was, and nobody has touched it since. */
function isUntouched(now: Touch, before: Entry): boolean {
  return (
    before.isSettled && before.mtimeNs === now.mtimeNs && before.ctimeNs === now.ctimeNs && before.inode === now.inode
  )
}

export function isUnchanged(now: Touch & Pick<Entry, 'sizeBytes'>, before: Entry): boolean {
  return before.kind === 'file' && before.sizeBytes === now.sizeBytes && isUntouched(now, before)
}

/** A file, by what the disk says of it. */
export const isUnchangedFile = (now: EntryStats, before: Entry) =>
  before.kind === 'file' && before.sizeBytes === Number(now.size) && isUntouched(touchOf(now), before)

/** To be listed just as that entry is. A file with several links is not: it is listed as what the first of them is. */
export function isAsItStands(now: EntryStats, before: Entry): boolean {
  if (now.isFile()) return now.nlink === 1n && before.hardLink === null && isUnchangedFile(now, before)
  return isAlike(now, before) && isUntouched(touchOf(now), before)
}

/** Both a directory, or both a symlink. */
function isAlike(now: EntryStats, { kind }: Entry): boolean {
  return kind === 'directory' ? now.isDirectory() : kind === 'symlink' && now.isSymbolicLink()
}

// Owner, mode and times, as a backup has them.
import {
  chmodSync,
  chownSync,
  fchmodSync,
  fchownSync,
  futimesSync,
  lchownSync,
  lstatSync,
  lutimesSync,
  utimesSync,
} from 'node:fs'
import { secondsOf } from '../../../kit/files/file-times.ts'
import type { EntryStats } from '../../files/sandbox/looked.ts'
import { keptModeOf, openReference, permissionsOf } from '../../files/sandbox/ownership.ts'
import type { Entry } from '../format/entries.ts'

export type Attributes = Pick<Entry, 'mode' | 'uid' | 'gid'> & { mtime: string; isSymlink: boolean }

const isRoot = process.getuid?.() === 0

/**
 * Never follows, also where a symlink is swapped in meanwhile: the thing is opened, looked at, and then named by its
 * descriptor. A symlink's own times are set, and its mode has no meaning. What is of the other kind is left alone.
 */
export function setAttributes(address: string | Buffer, attributes: Attributes): void {
  const { mode, uid, gid, mtime, isSymlink } = attributes
  const seconds = secondsOf(BigInt(mtime))
  if (isSymlink) {
    if (!lstatSync(address).isSymbolicLink()) return
    if (isRoot) lchownSync(address, uid, gid)
    lutimesSync(address, seconds, seconds)
    return
  }
  using reference = openReference(address)
  const { stats, address: opened } = reference
  if (stats.isSymbolicLink()) return
  if (isRoot) chownSync(opened, uid, gid)
  chmodSync(opened, keptModeOf({ mode }, stats.isDirectory()))
  utimesSync(opened, seconds, seconds)
}

/** The mode in which files are made before they are given their own: ours to open again until then. */
export const MADE_MODE = 0o600

/** Of a file that we have just made with `MADE_MODE` and written. `made` is the owner that it was made with. */
export function setMadeAttributes(
  fd: number,
  made: { uid: number; gid: number },
  { mode, uid, gid, mtimeNs }: Pick<Entry, 'mode' | 'uid' | 'gid' | 'mtimeNs'>,
): void {
  if (isRoot && (made.uid !== uid || made.gid !== gid)) fchownSync(fd, uid, gid)
  if (mode !== MADE_MODE) fchmodSync(fd, permissionsOf({ mode }))
  const seconds = secondsOf(mtimeNs)
  futimesSync(fd, seconds, seconds)
}

/** Of what is there. */
export function attributesFrom(stats: EntryStats): Attributes {
  const mode = keptModeOf(stats, stats.isDirectory())
  const isSymlink = stats.isSymbolicLink()
  return { mode, uid: Number(stats.uid), gid: Number(stats.gid), mtime: String(stats.mtimeNs), isSymlink }
}

export function attributesOf(entry: Entry): Attributes {
  const { mode, uid, gid } = entry
  return { mode, uid, gid, mtime: String(entry.mtimeNs), isSymlink: entry.kind === 'symlink' }
}

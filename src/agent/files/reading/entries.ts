// What a caller is told about one thing on disk.
import type { FileEntry, FileKind } from '../../../contract/agent/agent-files.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { wholeSeconds } from '../../../kit/files/file-times.ts'
import { type Directory, lstatAt, readlinkAt } from '../sandbox/directory.ts'
import { explained } from '../sandbox/errors.ts'
import type { EntryStats } from '../sandbox/looked.ts'
import { childPath } from '../sandbox/paths.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { guess } from './mime.ts'

export function kindOf(stats: EntryStats): FileKind {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'directory'
  return stats.isSymbolicLink() ? 'symlink' : 'other'
}

/** Changes whenever the content may have: a strong entity tag. */
export function etagOf(stats: EntryStats): string {
  return `"${stats.ino.toString(36)}-${stats.size.toString(36)}-${stats.mtimeNs.toString(36)}"`
}

/** Whether a list of entity tags, as in `If-Match`, names this one; `*` names any. A weak tag names none for certain. */
function isTagListed(list: string, etag: string): boolean {
  return list.trim() === '*' || list.split(',').some((tag) => tag.trim() === etag)
}

/** The same as in `If-None-Match`, where a weak tag is as good. */
export function isTagListedWeakly(list: string, etag: string): boolean {
  return isTagListed(list.replace(/(^|,)\s*W\//g, '$1'), etag)
}

export interface Version {
  etag: string
  modifiedAt: Date
}

export interface WantedVersion {
  /** The tags of which it must have one; `*` for any. */
  ifMatch?: string | undefined
  /** In milliseconds: it must not be of a later second. Nothing is later than what is no time. */
  ifUnmodifiedSince?: number | undefined
}

/** By its tag, and only without one by its time, which tells less. */
export function isWanted({ etag, modifiedAt }: Version, { ifMatch, ifUnmodifiedSince }: WantedVersion): boolean {
  if (ifMatch !== undefined) return isTagListed(ifMatch, etag)
  return ifUnmodifiedSince === undefined || !(wholeSeconds(modifiedAt) > ifUnmodifiedSince)
}

export function describe(parent: Directory, name: string, stats: EntryStats): FileEntry {
  const kind = kindOf(stats)
  const looks = kind === 'file' ? guess(parent, name) : undefined
  return {
    name,
    path: name === '.' ? parent.path : childPath(parent.path, name),
    kind,
    sizeBytes: kind === 'file' ? Number(stats.size) : 0,
    mode: (Number(stats.mode) & 0o7777).toString(8).padStart(4, '0'),
    modifiedAt: new Date(Number(stats.mtimeMs)).toISOString(),
    mime: looks?.mime ?? null,
    isText: looks?.isText ?? false,
    symlinkTarget: kind === 'symlink' ? targetIfThere(parent, name) : null,
  }
}

export function describeAt(parent: Directory, name: string): FileEntry {
  return describe(
    parent,
    name,
    explained(childPath(parent.path, name), () => lstatAt(parent, name)),
  )
}

/** Through symlinked directories that stay inside, up to the last name, which is described as it is. */
export function describePath(files: Sandbox, path: string): FileEntry {
  const segments = files.resolveParent(path)
  if (segments.length === 0) {
    using top = files.openDirectory(segments)
    return { ...describeAt(top, '.'), name: '' }
  }
  using place = files.openPlace(segments)
  return describeAt(place.parent, place.name)
}

function targetIfThere(parent: Directory, name: string): string | null {
  try {
    return readlinkAt(parent, name)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'EINVAL')) return null
    throw error
  }
}

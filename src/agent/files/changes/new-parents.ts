// Places a file below directories that do not exist yet. They are created in staging, with the file in them under a
// second name, and enter the server's files by one rename: even if interrupted, either both are there or neither.
import { isFailure } from '../../../contract/errors.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import {
  addressOf,
  type Directory,
  fsyncDirectory,
  isSameFile,
  linkedAt,
  lstatAt,
  mkdirAt,
  openChild,
  renameNewAt,
  unlinkAt,
} from '../sandbox/directory.ts'
import { giveTo, type Owner } from '../sandbox/ownership.ts'
import { checkNewName, type Segments } from '../sandbox/paths.ts'
import type { NewPlaceOptions, Sandbox } from '../sandbox/sandbox.ts'
import type { Staging } from '../sandbox/staging.ts'
import type { Source } from './replace.ts'

interface PlaceOptions extends NewPlaceOptions {
  /** For what is to belong to the server. */
  isOurs?: boolean
}

/**
 * False where it is not needed, or cannot be done in this way: directories have no second name, nor has anything on some
 * file systems.
 */
export async function placedWithParents(
  { files, staging }: { files: Sandbox; staging: Staging },
  source: Source,
  segments: Segments,
  { anyName = false, isOurs = false, onMade }: PlaceOptions = {},
): Promise<boolean> {
  const depth = depthOfMissing(files, segments)
  if (depth < 0 || lstatAt(source.folder, source.name).isDirectory()) return false
  const missing = segments.slice(depth)
  if (!anyName) for (const name of missing) checkNewName(name)
  const owner = files.owner()
  if (isOurs) giveTo(owner, addressOf(source.folder, source.name))
  await using built = staging.open()
  if (!(await hasBuilt(built, missing.slice(1), source, owner))) return false
  using top = openIfThere(files, segments.slice(0, depth))
  if (!top) return false
  try {
    renameNewAt(built.folder, built.name, top, missing[0] ?? '')
  } catch (error) {
    // Somebody has made the directory since.
    if (hasCode(error, 'EEXIST', 'ENOTEMPTY', 'ENOTDIR')) return false
    throw error
  }
  adoptAll(files, top, missing.slice(0, -1), onMade)
  dropOldName(files, source, segments)
  await fsyncDirectory(top)
  return true
}

/** Of the outermost directory that is not there; -1 where there is none, or something else is in the way. */
function depthOfMissing(files: Sandbox, segments: Segments): number {
  const above = segments.slice(0, -1)
  const { depth, stats } = files.reach(above)
  return depth === above.length || stats?.isDirectory() === false ? -1 : depth
}

/** Undefined where somebody has taken it away since. */
function openIfThere(files: Sandbox, segments: Segments): Directory | undefined {
  try {
    return files.openDirectory(segments)
  } catch (error) {
    if (isFailure(error, 'not_found')) return undefined
    throw error
  }
}

/** They count from now on. */
function adoptAll(files: Sandbox, top: Directory, names: Segments, onMade: NewPlaceOptions['onMade']): void {
  const adopt = (made: Directory) => {
    files.adopt(made)
    onMade?.(made)
  }
  let current = openChild(top, names[0] ?? '')
  for (const name of names.slice(1)) {
    using parent = current
    adopt(parent)
    current = openChild(parent, name)
  }
  using innermost = current
  adopt(innermost)
}

/** What a game has put under the old name since is its own. */
function dropOldName(files: Sandbox, { folder, name }: Source, segments: Segments): void {
  using place = files.openPlace(segments)
  if (isSameFile(folder, name, place.parent, place.name)) unlinkAt(folder, name)
}

/** A directory of this name, with directories in each other and the source in the innermost. */
async function hasBuilt(
  { folder, name }: Source,
  names: Segments,
  source: Source,
  owner: Owner | undefined,
): Promise<boolean> {
  makeOwned(folder, name, owner)
  let current = openChild(folder, name)
  for (const next of names.slice(0, -1)) {
    using parent = current
    makeOwned(parent, next, owner)
    await fsyncDirectory(parent)
    current = openChild(parent, next)
  }
  using innermost = current
  if (!linkedAt(source.folder, source.name, innermost, names.at(-1) ?? '')) return false
  await fsyncDirectory(innermost)
  return true
}

function makeOwned(parent: Directory, name: string, owner: Owner | undefined): void {
  mkdirAt(parent, name)
  giveTo(owner, addressOf(parent, name))
}

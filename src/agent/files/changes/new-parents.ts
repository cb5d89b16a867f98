// Places a file below directories that do not exist yet. They are created in staging, with the file in them under a
// second name, and enter the server's files by one rename: even if interrupted, either both are there or neither.
import type { BigIntStats } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
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
  usesDescriptors,
} from '../sandbox/directory.ts'
import { giveTo, type Owner } from '../sandbox/ownership.ts'
import { checkNewName, formatPath, type Segments } from '../sandbox/paths.ts'
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
  await using staged = staging.open()
  const built = await build(staged, missing.slice(1), source, owner)
  if (!built) return false
  using innermost = built.innermost
  using top = openIfThere(files, segments.slice(0, depth))
  // Whoever is to own them has come meanwhile: then each is made for them.
  if (!top || !isDeepStrictEqual(files.owner(), owner)) return false
  try {
    renameNewAt(staged.folder, staged.name, top, missing[0] ?? '')
  } catch (error) {
    // Somebody has made the directory since.
    if (hasCode(error, 'EEXIST', 'ENOTEMPTY', 'ENOTDIR')) return false
    throw error
  }
  // From here on nothing is opened, which could fail and leave it with two names.
  for (const [index, stats] of built.made.entries()) {
    const made = { path: formatPath(segments.slice(0, depth + index + 1)), stats }
    files.adopt(made)
    onMade?.(made)
  }
  if (usesDescriptors(innermost)) dropOldName(source, innermost, missing.at(-1) ?? '')
  else dropOldNameOf(source, files, segments)
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

/** What a game has put under the old name since is its own. Where the old one cannot be dropped, the new one is. */
function dropOldName({ folder, name }: Source, to: Directory, toName: string): void {
  const hasBoth = () => isSameFile(folder, name, to, toName)
  if (!hasBoth()) return
  try {
    unlinkAt(folder, name)
  } catch (error) {
    if (hasBoth()) unlinkAt(to, toName)
    throw error
  }
}

/** For systems on which an open directory has no address but its path, which the rename has changed. */
function dropOldNameOf(source: Source, files: Sandbox, segments: Segments): void {
  using place = files.openPlace(segments)
  dropOldName(source, place.parent, place.name)
}

interface Built {
  /** The caller closes it. */
  innermost: Directory
  /** The stats of the directories, the outermost first. */
  made: BigIntStats[]
}

/** A directory of this name, with directories in each other and the source in the innermost. */
async function build(
  { folder, name }: Source,
  names: Segments,
  source: Source,
  owner: Owner | undefined,
): Promise<Built | undefined> {
  const made: BigIntStats[] = []
  makeOwned(folder, name, owner)
  let current = openChild(folder, name)
  for (const next of names.slice(0, -1)) {
    using parent = current
    makeOwned(parent, next, owner)
    await fsyncDirectory(parent)
    made.push(lstatAt(parent, '.'))
    current = openChild(parent, next)
  }
  using held = new DisposableStack()
  const innermost = held.use(current)
  if (!linkedAt(source.folder, source.name, innermost, names.at(-1) ?? '')) return undefined
  await fsyncDirectory(innermost)
  made.push(lstatAt(innermost, '.'))
  held.move()
  return { innermost, made }
}

function makeOwned(parent: Directory, name: string, owner: Owner | undefined): void {
  mkdirAt(parent, name)
  giveTo(owner, addressOf(parent, name))
}

// What a game must not see although it lies below something of the system that it sees: a data directory in /opt, for example.
import { realpathSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { isBelow, otherPlacesOf } from './mounts.ts'

/** Everything in it is part of the system. */
const SYSTEM = '/usr'

/** Arguments of bubblewrap. After those that show `seen`, which are places that are the same inside. */
export function maskArguments(seen: readonly string[], hidden: readonly string[]): string[] {
  const tops = seen.flatMap((top) => realPathOf(top) ?? [])
  const named = [...new Set(hidden.flatMap((path) => targetsOf(path, tops)))]
  const everywhere = [...new Set(named.flatMap((target) => [target, ...otherPlacesOf(target)]))]
  // One that is not seen hides nothing below it that is.
  const targets = everywhere.filter((target) => seen.some((top) => placesOf(target, top).length > 0))
  // Within a folder that is hidden there is nothing to hide, and no place to do so.
  const outermost = targets.filter((target) => !targets.some((other) => other !== target && isBelow(target, other)))
  return outermost.flatMap((target) => {
    const hide = isFolder(target) ? hideFolder : hideFile
    return seen.flatMap((top) => placesOf(target, top)).flatMap(hide)
  })
}

/**
 * Of a key, the folder that it is in, and the one that a link to it is in: the mask of a file goes when another file takes
 * its name, as one does when a key is renewed, and there is none of a file that is not there yet.
 */
function targetsOf(path: string, tops: readonly string[]): string[] {
  const target = realPathOf(path)
  if (target !== undefined && isFolder(target)) return [target]
  const isShared = (folder: string) => tops.some((top) => isBelow(top, folder)) || isBelow(folder, SYSTEM)
  const folders = [realPathOf(dirname(path)) ?? [], target === undefined ? [] : dirname(target)].flat()
  // A game needs the rest of such a folder.
  return folders.flatMap((folder) => (isShared(folder) ? (target ?? []) : folder))
}

/** Where the target is inside, if it is below what is seen there; a link may have led elsewhere. */
function placesOf(target: string, top: string): string[] {
  const realTop = realPathOf(top)
  if (realTop === undefined) return []
  return isBelow(target, realTop) ? [join(top, relative(realTop, target))] : []
}

const isFolder = (path: string) => statSync(path).isDirectory()
const hideFolder = (path: string) => ['--perms', '0000', '--tmpfs', path, '--remount-ro', path]
const hideFile = (path: string) => ['--ro-bind', '/dev/null', path]

/** Undefined where there is nothing. */
function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

// What a game must not see although it lies below something of the system that it sees: a data directory in /opt, for example.
import { realpathSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'

/** Arguments of bubblewrap. After those that show `seen`, which are places that are the same inside. */
export function maskArguments(seen: readonly string[], hidden: readonly string[]): string[] {
  const targets = [...new Set(hidden.flatMap((path) => realPathOf(path) ?? []))]
  // Within a folder that is hidden there is nothing to hide, and no place to do so.
  const outermost = targets.filter((target) => !targets.some((other) => other !== target && isBelow(target, other)))
  return outermost.flatMap((target) => {
    const hide = statSync(target).isDirectory() ? hideFolder : hideFile
    return seen.flatMap((top) => placesOf(target, top)).flatMap(hide)
  })
}

/** Where the target is inside, if it is below what is seen there; a link may have led elsewhere. */
function placesOf(target: string, top: string): string[] {
  const realTop = realPathOf(top)
  if (realTop === undefined) return []
  return isBelow(target, realTop) ? [join(top, relative(realTop, target))] : []
}

/** Or the same. */
function isBelow(path: string, top: string): boolean {
  const way = relative(top, path)
  return way !== '..' && !way.startsWith('../')
}

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

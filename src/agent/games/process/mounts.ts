// Where else a folder of this machine is seen: a bind mount shows it under another name, which no path tells of.
import { type Stats, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { hasCode } from '../../../kit/files/errno.ts'
import { readIfThere } from '../../../kit/files/kernel-files.ts'

interface Mount {
  device: string
  /** What of the file system is mounted, as a path in that. */
  root: string
  place: string
}

const readMounts = (): Mount[] =>
  readIfThere('/proc/self/mountinfo')
    .split('\n')
    .flatMap((line) => {
      const [, , device, root, place] = line.split(' ')
      return device && root && place ? [{ device, root: unescaped(root), place: unescaped(place) }] : []
    })

/** The kernel writes what would end a field as three octal digits. */
const unescaped = (text: string) =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/** Or the same. */
export function isBelow(path: string, top: string): boolean {
  const way = relative(top, path)
  return way !== '..' && !way.startsWith('../')
}

/** The other names of a folder or a file, and those of what is below it. The path must be real. */
export function otherPlacesOf(path: string): string[] {
  const mounts = readMounts()
  const own = mounts.findLast(
    ({ place }) => isBelow(path, place) && !mounts.some((each) => isCloser(each, place, path)),
  )
  if (!own) return []
  const inside = join(own.root, relative(own.place, path))
  return mounts.flatMap(({ device, root, place }) => {
    if (device !== own.device) return []
    if (isBelow(inside, root)) return sameIn(path, join(place, relative(root, inside)))
    return isBelow(root, inside) ? sameIn(join(path, relative(inside, root)), place) : []
  })
}

const isCloser = ({ place }: Mount, than: string, path: string) =>
  place !== than && isBelow(place, than) && isBelow(path, place)

/** Another mount may be over it. */
function sameIn(path: string, place: string): string[] {
  if (path === place) return []
  const [one, other] = [path, place].map(identityOf)
  return one && other && one.dev === other.dev && one.ino === other.ino ? [place] : []
}

/** Undefined where there is nothing, and where we may not reach it: then no game may that sees as much as we do. */
function identityOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if (hasCode(error, 'EACCES')) return undefined
    throw error
  }
}

// How the agent takes paths apart and compares them. What one from a caller may look like is decided by the rules of the contract.
import type { Segments } from '../../../contract/files/path-rules.ts'
import { createPathTree } from './path-tree.ts'

export {
  checkNewName,
  formatPath,
  MAX_NAME_BYTES,
  MAX_PATH_BYTES,
  parseEntry,
  parsePath,
  refuseDepth,
  type Segments,
} from '../../../contract/files/path-rules.ts'

/** For a path that we wrote ourselves, whose names are what is on disk, however odd. */
export function splitPath(path: string): Segments {
  return path === '/' ? [] : path.slice(1).split('/')
}

export function childPath(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`
}

/** Whether `inner` is `outer` or lies beneath it. */
export function isWithin(outer: Segments, inner: Segments): boolean {
  return outer.length <= inner.length && outer.every((segment, index) => segment === inner[index])
}

/** Without those that lie beneath another; of several spellings of one path the first counts. */
export function outermost(paths: readonly Segments[]): Segments[] {
  return outermostBy(paths, (path) => path)
}

export function outermostBy<T>(items: readonly T[], segmentsOf: (item: T) => Segments): T[] {
  const paths = createPathTree()
  const first = items.filter((item) => paths.add(segmentsOf(item))?.is !== 'same')
  return first.filter((item) => !paths.hasAbove(segmentsOf(item)))
}

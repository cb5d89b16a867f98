// What a path from a caller may look like, decided without touching the disk. A path is "/a/b"; "/" is the top.
import { fail } from '../../../contract/errors.ts'
import { MAX_DEPTH } from '../../../contract/fixed-limits.ts'
import { pathNames } from '../../../kit/files/path-names.ts'
import { nameToBytes } from './names.ts'
import { createPathTree } from './path-tree.ts'

export const MAX_NAME_BYTES = 255
export const MAX_PATH_BYTES = 4096
const MAX_DECODINGS = 3

/** The names from the top downwards; none of them is empty, `.` or `..`, or could be taken for those when decoded. */
export type Segments = readonly string[]

/** For what exists already. A slash too many and `.` mean nothing; `..` is refused, since nobody can know what it meant. */
export function parsePath(path: string): Segments {
  if (path === '') throw fail('invalid_path', 'The path is empty.')
  refuseBrokenText(path)
  const segments = pathNames(path)
  refuseDepth(segments)
  for (const segment of segments) checkSegment(segment)
  return segments
}

/** Also for what is put together from several paths, or moved with all it holds. */
export function refuseDepth({ length }: { readonly length: number }): void {
  if (length > MAX_DEPTH) throw fail('invalid_path', `A path has at most ${MAX_DEPTH} names.`)
}

/**
 * An entry of a request that names a directory and things relative to it. It is relative with a slash in front too: a
 * request never reaches outside the directory that it names.
 */
export function parseEntry(root: Segments, entry: string): Segments {
  const segments = [...root, ...parsePath(entry)]
  if (segments.length === root.length) throw fail('invalid_path', 'An entry cannot be its root itself.')
  refuseDepth(segments)
  refuseBrokenText(formatPath(segments))
  return segments
}

/** One name that is about to be made. */
export function checkNewName(name: string): string {
  refuseBrokenText(name)
  if (name === '') throw fail('invalid_path', 'A path cannot contain an empty name.')
  if (name.includes('/')) throw fail('invalid_path', 'A name cannot contain a slash.')
  checkSegment(name)
  if (name.includes('\\')) throw fail('invalid_path', 'A name cannot contain a backslash.')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(name))
    throw fail('invalid_path', 'A name cannot contain control characters.')
  if (/[\u{10fe80}-\u{10feff}]/u.test(name)) throw fail('invalid_path', 'A name must be valid UTF-8.')
  if (/[. ]$/.test(name)) throw fail('invalid_path', 'A name cannot end in a dot or a space.')
  if (name.startsWith(' ')) throw fail('invalid_path', 'A name cannot start with a space.')
  return name
}

export function formatPath(segments: Segments): string {
  return `/${segments.join('/')}`
}

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

function refuseBrokenText(path: string): void {
  // Before anything that looks at every character: whoever sends megabytes hears it at once.
  const tooLong = () => fail('invalid_path', `A path has at most ${MAX_PATH_BYTES} bytes.`)
  if (path.length > MAX_PATH_BYTES) throw tooLong()
  if (path.includes('\0')) throw fail('invalid_path', 'A path cannot contain a NUL.')
  if (!path.isWellFormed()) throw fail('invalid_path', 'The path is not valid Unicode.')
  if (nameToBytes(path).length > MAX_PATH_BYTES) throw tooLong()
}

/** Of a text that has been looked at as a whole. */
function checkSegment(segment: string): void {
  if (nameToBytes(segment).length > MAX_NAME_BYTES)
    throw fail('invalid_path', `A name has at most ${MAX_NAME_BYTES} bytes.`)
  if (readsAsTraversal(segment)) throw fail('invalid_path', 'A path cannot contain "." or "..".')
}

/**
 * The disk takes `%2e%2e` and `..\x` for plain names, but whatever a path passes through later (a browser, an archive
 * unpacked on Windows) might not, and nobody has a use for them.
 */
function readsAsTraversal(segment: string): boolean {
  let text = segment
  for (let round = 0; round <= MAX_DECODINGS; round++) {
    if (text === '.' || text.split(/[\\/]/).includes('..')) return true
    const decoded = text.replace(/%(2e|2f|5c|25)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    if (decoded === text) return false
    text = decoded
  }
  return false
}

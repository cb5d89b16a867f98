// What a path or a name from a caller may look like, decided without touching the disk. A path is "/a/b"; "/" is the top.
// Control asks before it queues work, the agent whenever it is given one.
import { fail } from '../errors.ts'
import { MAX_DEPTH } from '../fixed-limits.ts'

export const MAX_NAME_BYTES = 255
export const MAX_PATH_BYTES = 4096
const MAX_DECODINGS = 3
/** Each stands for one byte of a name on disk that is not valid UTF-8 (docs/files.md). */
const ESCAPED_BYTE = /[\u{10fe80}-\u{10feff}]/u
const ESCAPED_BYTE_LENGTH = 4

/** The names from the top downwards; none of them is empty, `.` or `..`, or could be taken for those when decoded. */
export type Segments = readonly string[]

/** The names that a path is made of, from the top. Slashes in a row, at the start or at the end, and `.` add none. */
export function pathNames(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.')
}

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
  if (ESCAPED_BYTE.test(name)) throw fail('invalid_path', 'A name must be valid UTF-8.')
  if (/[. ]$/.test(name)) throw fail('invalid_path', 'A name cannot end in a dot or a space.')
  if (name.startsWith(' ')) throw fail('invalid_path', 'A name cannot start with a space.')
  return name
}

export function formatPath(segments: Segments): string {
  return `/${segments.join('/')}`
}

function refuseBrokenText(path: string): void {
  // Before anything that looks at every character: whoever sends megabytes hears it at once.
  const tooLong = () => fail('invalid_path', `A path has at most ${MAX_PATH_BYTES} bytes.`)
  if (path.length > MAX_PATH_BYTES) throw tooLong()
  if (path.includes('\0')) throw fail('invalid_path', 'A path cannot contain a NUL.')
  if (!path.isWellFormed()) throw fail('invalid_path', 'The path is not valid Unicode.')
  if (bytesOnDisk(path) > MAX_PATH_BYTES) throw tooLong()
}

function bytesOnDisk(text: string): number {
  const bytes = Buffer.byteLength(text)
  if (!ESCAPED_BYTE.test(text)) return bytes
  return bytes - (text.split(ESCAPED_BYTE).length - 1) * (ESCAPED_BYTE_LENGTH - 1)
}

/** Of a text that has been looked at as a whole. */
function checkSegment(segment: string): void {
  if (bytesOnDisk(segment) > MAX_NAME_BYTES) throw fail('invalid_path', `A name has at most ${MAX_NAME_BYTES} bytes.`)
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

// What every archive format has in common.
import { fail } from '../../../contract/errors.ts'
import { nameFromBytes } from '../sandbox/names.ts'
import { MAX_PATH_BYTES } from '../sandbox/paths.ts'

export interface ArchiveEntry {
  /** Relative, with `/` between names, and no slash at the end. What is read from an archive is not to be trusted. */
  path: string
  kind: 'file' | 'directory' | 'symlink'
  mode: number
  modifiedAt: Date
  /** Of a file. A writer sends exactly this many bytes, whatever becomes of the file while it is read. */
  sizeBytes: number
  /** Of a symlink; empty for anything else. */
  target: string
  /** To be read before the next entry is asked for. */
  content(): AsyncIterable<Uint8Array>
}

export function invalidArchive(detail: string, cause?: unknown) {
  return fail('invalid_archive', detail, cause)
}

const SLASH = 0x2f

/** The name of an entry as an archive spells it, where a slash at the end means a directory. */
export function entryName(bytes: Uint8Array): { path: string; isDirectory: boolean } {
  if (bytes.length > MAX_PATH_BYTES) throw invalidArchive('The archive holds a name of impossible length.')
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === SLASH) end--
  return { path: nameFromBytes(bytes.subarray(0, end)), isDirectory: end < bytes.length }
}

export async function* nothing(): AsyncGenerator<Uint8Array> {}

/** Exactly `size` bytes: a file that grew is cut, one that shrank is filled with zeros, as tar does. */
export async function* exactly(source: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let left = size
  for await (const chunk of source) {
    if (left === 0) break
    const part = chunk.length > left ? chunk.subarray(0, left) : chunk
    left -= part.length
    yield part
  }
  while (left > 0) {
    const filler = Buffer.alloc(Math.min(left, 65_536))
    left -= filler.length
    yield filler
  }
}

// One entry of a manifest: what a tree holds under one path, and how it is written down.
import { nameFromBytes, nameToBytes } from '../files/names.ts'
import { BLOCK_BYTES, ID_BYTES } from './format.ts'

export type EntryKind = 'file' | 'directory' | 'symlink'

export interface Entry {
  /** "/a/b", its names escaped as everywhere in the agent. */
  path: string
  kind: EntryKind
  mode: number
  uid: number
  gid: number
  mtimeNs: bigint
  ctimeNs: bigint
  inode: bigint
  sizeBytes: number
  /**
   * The file had been left alone for a while when it was read, so equal times mean equal content. A file written within
   * the clock's tick of being read could be written again unseen: it is read again next time.
   */
  isSettled: boolean
  /** A symlink's target as it stands in the link. */
  target: string | null
  /** The path, earlier in the manifest, of which this is another hard link. Its content is listed here as well. */
  hardLink: string | null
  /** A file's blocks as runs; see docs/backup-format.md. */
  content: Uint8Array
}

const KINDS: readonly EntryKind[] = ['file', 'directory', 'symlink']
const SETTLED = 1
const HARD_LINK = 2
const FIXED_BYTES = 32
export const NO_CONTENT = new Uint8Array()
const ASCII = /^[ -~]*$/

/** Sorts as a walk does: a directory, then what it holds, then its next neighbour. By bytes, with `/` before all. */
export function orderKey(path: string): string {
  const bytes = ASCII.test(path) ? path.slice(1) : nameToBytes(path.slice(1)).toString('latin1')
  return bytes.replaceAll('/', '\0')
}

export interface EntryEncoder {
  add(entry: Entry, pathBytes: Buffer): void
  readonly sizeBytes: number
  readonly count: number
  /** What was added since the last `take`. */
  take(): Buffer
}

export function createEntryEncoder(): EntryEncoder {
  let buffer = Buffer.allocUnsafeSlow(1 << 16)
  let at = 0
  let count = 0
  let previous: Buffer = Buffer.alloc(0)

  function reserve(bytes: number): void {
    if (at + bytes <= buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(buffer.length * 2, at + bytes))
    buffer.copy(larger, 0, 0, at)
    buffer = larger
  }

  function varint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      buffer[at++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    buffer[at++] = rest
  }

  function bytes(value: Uint8Array): void {
    varint(value.length)
    buffer.set(value, at)
    at += value.length
  }

  return {
    get sizeBytes() {
      return at
    },
    get count() {
      return count
    },
    add(entry, pathBytes) {
      const target = entry.target === null ? NO_CONTENT : nameToBytes(entry.target)
      const hardLink = entry.hardLink === null ? NO_CONTENT : nameToBytes(entry.hardLink.slice(1))
      reserve(pathBytes.length + target.length + hardLink.length + entry.content.length + FIXED_BYTES + 64)
      const shared = sharedPrefix(previous, pathBytes)
      varint(shared)
      bytes(pathBytes.subarray(shared))
      buffer[at++] = KINDS.indexOf(entry.kind)
      buffer[at++] = (entry.isSettled ? SETTLED : 0) | (entry.hardLink === null ? 0 : HARD_LINK)
      varint(entry.mode)
      varint(entry.uid)
      varint(entry.gid)
      at = buffer.writeBigInt64LE(entry.mtimeNs, at)
      at = buffer.writeBigInt64LE(entry.ctimeNs, at)
      at = buffer.writeBigUInt64LE(entry.inode, at)
      at = buffer.writeBigUInt64LE(BigInt(entry.sizeBytes), at)
      if (entry.hardLink !== null) bytes(hardLink)
      if (entry.kind === 'symlink') bytes(target)
      if (entry.kind === 'file') bytes(entry.content)
      previous = pathBytes
      count++
    },
    take() {
      const taken = Buffer.from(buffer.subarray(0, at))
      at = 0
      count = 0
      previous = Buffer.alloc(0)
      return taken
    },
  }
}

function sharedPrefix(a: Uint8Array, b: Uint8Array): number {
  const limit = Math.min(a.length, b.length)
  let length = 0
  while (length < limit && a[length] === b[length]) length++
  return length
}

export interface KeyedEntry extends Entry {
  key: string
}

/** The chunk's own digest has been checked before. */
export function decodeEntries(chunk: Buffer): KeyedEntry[] {
  const entries: KeyedEntry[] = []
  let at = 0
  let path = ''

  function varint(): number {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = chunk[at++] ?? 0
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      scale *= 0x80
    }
  }

  function bytes(): Buffer {
    const length = varint()
    at += length
    return chunk.subarray(at - length, at)
  }

  while (at < chunk.length) {
    const shared = varint()
    path = path.slice(0, shared) + bytes().toString('latin1')
    const kind = KINDS[chunk[at++] ?? 0] ?? 'file'
    const flags = chunk[at++] ?? 0
    const mode = varint()
    const uid = varint()
    const gid = varint()
    const mtimeNs = chunk.readBigInt64LE(at)
    const ctimeNs = chunk.readBigInt64LE(at + 8)
    const inode = chunk.readBigUInt64LE(at + 16)
    const sizeBytes = Number(chunk.readBigUInt64LE(at + 24))
    at += FIXED_BYTES
    const hardLink = flags & HARD_LINK ? `/${nameFromBytes(bytes())}` : null
    const target = kind === 'symlink' ? nameFromBytes(bytes()) : null
    const content = kind === 'file' ? bytes() : NO_CONTENT
    const isSettled = (flags & SETTLED) !== 0
    // Written out: this runs once for every file of every backup, and spreading objects triples its cost.
    // biome-ignore format: one line a group
    entries.push({
      key: path.replaceAll('/', '\0'), path: pathFromLatin1(path), kind,
      mode, uid, gid, mtimeNs, ctimeNs, inode, sizeBytes, isSettled,
      target, hardLink, content,
    })
  }
  return entries
}

function pathFromLatin1(latin1: string): string {
  return ASCII.test(latin1) ? `/${latin1}` : `/${nameFromBytes(Buffer.from(latin1, 'latin1'))}`
}

/** Builds a file's content from its blocks in order; null stands for a block of nothing but zeros. */
export function createContent() {
  const parts: Uint8Array[] = []
  let run: Uint8Array[] = []
  let zeros = 0
  const flush = () => {
    if (zeros > 0) parts.push(varintBytes(zeros * 2 + 1))
    if (run.length > 0) parts.push(varintBytes(run.length * 2), ...run)
    zeros = 0
    run = []
  }
  return {
    add(id: Uint8Array | null) {
      if (id === null ? run.length > 0 : zeros > 0) flush()
      if (id === null) zeros++
      else run.push(id)
    },
    take(): Uint8Array {
      flush()
      return Buffer.concat(parts)
    },
  }
}

function varintBytes(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80)
    rest = Math.floor(rest / 0x80)
  }
  return Uint8Array.of(...bytes, rest)
}

/** Calls back for each block: where its id stands in `content` (-1: all zeros), its offset in the file, its length. */
export function eachBlock(
  entry: Pick<Entry, 'content' | 'sizeBytes'>,
  visit: (idAt: number, offset: number, length: number) => void,
): void {
  const { content, sizeBytes } = entry
  let at = 0
  let offset = 0
  while (at < content.length) {
    let head = 0
    let scale = 1
    for (;;) {
      const byte = content[at++] ?? 0
      head += (byte & 0x7f) * scale
      if (byte < 0x80) break
      scale *= 0x80
    }
    const isZero = head % 2 === 1
    for (let left = Math.floor(head / 2); left > 0; left--) {
      visit(isZero ? -1 : at, offset, Math.min(BLOCK_BYTES, sizeBytes - offset))
      if (!isZero) at += ID_BYTES
      offset += BLOCK_BYTES
    }
  }
}

/** A manifest is not trusted further than its digest: no name in it may lead out of the tree. */
export function segmentsOf(path: string): string[] {
  const segments = path.slice(1).split('/')
  if (
    !path.startsWith('/') ||
    segments.some((name) => name === '' || name === '.' || name === '..' || name.includes('\0'))
  )
    throw new Error(`a manifest names ${JSON.stringify(path)}`)
  return segments
}

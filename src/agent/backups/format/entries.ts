// One entry of a manifest: what a tree holds under one path, and how it is written down.
import { nameFromBytes, nameToBytes } from '../../files/sandbox/names.ts'
import { varintAt, varintLength, visitRuns } from './block-runs.ts'

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
/** Mode, owner and group. */
const VARINT_FIELDS = 3
/** Times, inode and size. */
const FIXED_BYTES = 32
export const NO_CONTENT = new Uint8Array()
const ASCII = /^[ -~]*$/

/** Sorts as a walk does: a directory, then what it holds, then its next neighbour. By bytes, with `/` before all. */
export function orderKey(path: string): string {
  const bytes = ASCII.test(path) ? path.slice(1) : nameToBytes(path.slice(1)).toString('latin1')
  return keyOfPath(bytes)
}

export interface EntryEncoder {
  /** `key` is the order key of its path. */
  add(entry: Entry, key: string): void
  /** As it stands in another manifest. */
  addAsItStands(entry: StoredEntry): void
  readonly sizeBytes: number
  readonly count: number
  /** What was added since the last `take`. */
  take(): Buffer
}

export function createEntryEncoder(): EntryEncoder {
  let buffer = Buffer.allocUnsafeSlow(1 << 16)
  let view = viewOf(buffer)
  let at = 0
  let count = 0
  let previous = ''

  function reserve(bytes: number): void {
    if (at + bytes <= buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(buffer.length * 2, at + bytes))
    buffer.copy(larger, 0, 0, at)
    buffer = larger
    view = viewOf(buffer)
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

  function path(key: string): void {
    const shared = sharedPrefix(previous, key)
    const rest = pathOfKey(key.slice(shared))
    varint(shared)
    varint(rest.length)
    at += buffer.write(rest, at, 'latin1')
    previous = key
    count++
  }

  return {
    get sizeBytes() {
      return at
    },
    get count() {
      return count
    },
    add(entry, key) {
      const target = entry.target === null ? NO_CONTENT : nameToBytes(entry.target)
      const hardLink = entry.hardLink === null ? NO_CONTENT : nameToBytes(entry.hardLink.slice(1))
      reserve(key.length + target.length + hardLink.length + entry.content.length + FIXED_BYTES + 64)
      path(key)
      buffer[at++] = KINDS.indexOf(entry.kind)
      buffer[at++] = (entry.isSettled ? SETTLED : 0) | (entry.hardLink === null ? 0 : HARD_LINK)
      varint(entry.mode)
      varint(entry.uid)
      varint(entry.gid)
      view.setBigInt64(at, entry.mtimeNs, true)
      view.setBigInt64(at + 8, entry.ctimeNs, true)
      view.setBigUint64(at + 16, entry.inode, true)
      view.setBigUint64(at + 24, BigInt(entry.sizeBytes), true)
      at += FIXED_BYTES
      if (entry.hardLink !== null) bytes(hardLink)
      if (entry.kind === 'symlink') bytes(target)
      if (entry.kind === 'file') bytes(entry.content)
    },
    addAsItStands({ key, chunk, recordAt, recordEnd }) {
      reserve(key.length + recordEnd - recordAt + 32)
      path(key)
      at += chunk.raw.copy(buffer, at, recordAt, recordEnd)
    },
    take() {
      const taken = Buffer.from(buffer.subarray(0, at))
      at = 0
      count = 0
      previous = ''
      return taken
    },
  }
}

/** Numbers of 64 bits are read and written by it: a Buffer's own methods take ten times as long. */
const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length)

function sharedPrefix(a: string, b: string): number {
  const limit = Math.min(a.length, b.length)
  let length = 0
  while (length < limit && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}

export interface KeyedEntry extends Entry {
  key: string
}

/** Entries that are encoded together. */
export interface Chunk {
  raw: Buffer
  /** As it stands in its manifest, or in a part. */
  stored: Uint8Array
  place: ChunkPlace
  /** What it was read from, where that is not the manifest itself. */
  part: SharedPart | undefined
}

/** A blob of chunks that manifests of a server share. */
export interface PartRef {
  id: string
  sizeBytes: number
}

export interface SharedPart extends PartRef {
  /** The manifest needs less than half of it. */
  isSparse: boolean
}

/** Where a chunk is, and what it holds: of one in the manifest itself `digest` is known, of one in a part `part` and `id`. */
export interface ChunkPlace {
  offset: number
  storedLength: number
  rawLength: number
  codec: number
  crc: number
  /** Hex, of the stored bytes. */
  digest?: string
  /** The index of the part in the manifest's list. */
  part?: number
  /** Hex, of the decoded bytes: their name, as if they were a block. */
  id?: string
  entryCount: number
  /** The order key of its first entry, in base 64. */
  first: string
}

export interface StoredEntry extends KeyedEntry {
  /** What it was read from, its index in there, and the position of everything but its path. */
  chunk: Chunk
  ordinal: number
  recordAt: number
  recordEnd: number
}

export function decodeEntries(chunk: Chunk): StoredEntry[] {
  const entries: StoredEntry[] = []
  const next = createEntryDecoder(chunk)
  for (let entry = next(); entry; entry = next()) entries.push(entry)
  return entries
}

/** One entry after another, undefined at the end. The chunk's own digest has been checked before. */
export function createEntryDecoder(chunk: Chunk): () => StoredEntry | undefined {
  const { raw } = chunk
  const view = viewOf(raw)
  let at = 0
  let ordinal = 0
  let key = ''

  function varint(): number {
    const value = varintAt(raw, at)
    at += varintLength(raw, at)
    return value
  }

  function bytes(): Buffer {
    const length = varint()
    at += length
    return raw.subarray(at - length, at)
  }

  function path(): string {
    const shared = varint()
    const length = varint()
    at += length
    return key.slice(0, shared) + keyOfPath(raw.toString('latin1', at - length, at))
  }

  return () => {
    if (at >= raw.length) return undefined
    key = path()
    const recordAt = at
    const kind = KINDS[raw[at++] ?? 0] ?? 'file'
    const flags = raw[at++] ?? 0
    const mode = varint()
    const uid = varint()
    const gid = varint()
    const mtimeNs = view.getBigInt64(at, true)
    const ctimeNs = view.getBigInt64(at + 8, true)
    const inode = view.getBigUint64(at + 16, true)
    const sizeBytes = view.getUint32(at + 24, true) + view.getUint32(at + 28, true) * 0x1_0000_0000
    at += FIXED_BYTES
    const hardLink = flags & HARD_LINK ? `/${nameFromBytes(bytes())}` : null
    const target = kind === 'symlink' ? nameFromBytes(bytes()) : null
    const content = kind === 'file' ? bytes() : NO_CONTENT
    const isSettled = (flags & SETTLED) !== 0
    // Written out: this runs once for every file of every backup, and spreading objects triples its cost.
    // biome-ignore format: one line a group
    return {
      key, path: pathFromLatin1(pathOfKey(key)), kind,
      mode, uid, gid, mtimeNs, ctimeNs, inode, sizeBytes, isSettled,
      target, hardLink, content,
      chunk, ordinal: ordinal++, recordAt, recordEnd: at,
    }
  }
}

/** Where in a chunk the ids of its files' blocks stand: all that marking needs, at a fraction of what decoding costs. */
export function visitIds(chunk: Buffer, visit: (idAt: number) => void): void {
  let at = 0
  const skipVarint = () => {
    at += varintLength(chunk, at)
  }
  const skipBytes = () => {
    const length = varintAt(chunk, at)
    skipVarint()
    at += length
  }
  while (at < chunk.length) {
    skipVarint()
    skipBytes()
    const kind = KINDS[chunk[at++] ?? 0]
    const flags = chunk[at++] ?? 0
    for (let field = 0; field < VARINT_FIELDS; field++) skipVarint()
    at += FIXED_BYTES
    if (flags & HARD_LINK) skipBytes()
    if (kind === 'symlink') skipBytes()
    if (kind !== 'file') continue
    const start = at + varintLength(chunk, at)
    skipBytes()
    visitRuns(chunk, start, at, (idAt) => {
      if (idAt >= 0) visit(idAt)
    })
  }
}

const keyOfPath = (latin1: string) => (latin1.includes('/') ? latin1.replaceAll('/', '\0') : latin1)
const pathOfKey = (key: string) => (key.includes('\0') ? key.replaceAll('\0', '/') : key)

function pathFromLatin1(latin1: string): string {
  return ASCII.test(latin1) ? `/${latin1}` : `/${nameFromBytes(Buffer.from(latin1, 'latin1'))}`
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

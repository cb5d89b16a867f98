// One entry of a manifest: what a tree holds under one path, and how it is written down.
import { ASCII, nameFromLatin1, nameToBytes } from '../../files/sandbox/names.ts'
import { varintAt, varintLength, visitNeeded } from './block-runs.ts'
import { type IsWhole, neverWhole } from './patched.ts'

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
   * the clock's tick of being read could be written again unseen: it is read again next time. So are a directory's names.
   */
  isSettled: boolean
  /** A symlink's target as it stands in the link. */
  target: string | null
  /** The path, earlier in the manifest, of which this is another hard link. Its content is listed here as well. */
  hardLink: string | null
  /** A file's blocks as runs; see docs/backup-format.md. */
  content: Uint8Array
}

export const KINDS: readonly EntryKind[] = ['file', 'directory', 'symlink']
export const SETTLED = 1
export const HARD_LINK = 2
/** Mode, owner and group. */
const VARINT_FIELDS = 3
/** Times, inode and size. */
export const FIXED_BYTES = 32
export const NO_CONTENT = new Uint8Array()

/** Sorts as a walk does: a directory, then what it holds, then its next neighbour. By bytes, with `/` before all. */
export const orderKey = (path: string): string => keyOfPath(bytesOf(path.slice(1)))

const bytesOf = (name: string) => (ASCII.test(name) ? name : nameToBytes(name).toString('latin1'))

/** As `orderKey`, for whoever asks for what one directory holds after another: of each, most has been made before. */
export function createOrderKeys(): (directory: string, name: string) => string {
  let last: string | undefined
  let prefix = ''
  return (directory, name) => {
    if (directory !== last) prefix = directory === '/' ? '' : `${orderKey(directory)}\0`
    last = directory
    return prefix + bytesOf(name)
  }
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
export const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length)

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

/** What entries are, all together. */
export interface EntryCounts {
  fileCount: number
  directoryCount: number
  symlinkCount: number
  /** Of files; one with several links counts once. */
  sizeBytes: number
}

export const NO_ENTRIES: Readonly<EntryCounts> = { fileCount: 0, directoryCount: 0, symlinkCount: 0, sizeBytes: 0 }

export function count(counts: EntryCounts, { kind, hardLink, sizeBytes }: Entry): void {
  if (kind === 'file') counts.fileCount++
  else if (kind === 'directory') counts.directoryCount++
  else counts.symlinkCount++
  if (kind === 'file' && hardLink === null) counts.sizeBytes += sizeBytes
}

export type StoredEntry = EntryOf<Chunk>

export interface EntryOf<C> extends KeyedEntry {
  /** What it was read from, its index in there, and the position of everything but its path. */
  chunk: C
  ordinal: number
  recordAt: number
  recordEnd: number
}

/** Where in a chunk the ids of its files' blocks stand: all that marking needs, at a fraction of what decoding costs. */
export function visitIds(chunk: Buffer, visit: (idAt: number) => void, isWhole: IsWhole = neverWhole): void {
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
    visitNeeded(chunk, visit, isWhole, start, at)
  }
}

export const keyOfPath = (latin1: string) => (latin1.includes('/') ? latin1.replaceAll('/', '\0') : latin1)
const pathOfKey = (key: string) => (key.includes('\0') ? key.replaceAll('\0', '/') : key)

/** What `orderKey` was made of. */
export const pathOfOrderKey = (key: string): string => `/${nameFromLatin1(pathOfKey(key))}`

const isName = (text: string) => text !== '' && text !== '.' && text !== '..' && !/[/\0]/.test(text)

/** A manifest is not trusted further than its digest: no name in it may lead out of the tree. */
export function segmentsOf(path: string): string[] {
  const segments = path.slice(1).split('/')
  if (!path.startsWith('/') || !segments.every(isName)) throw misnamed(path)
  return segments
}

/** The same, of one name. */
export function checkName(name: string): void {
  if (!isName(name)) throw misnamed(name)
}

const misnamed = (text: string) => new Error(`a manifest names ${JSON.stringify(text)}`)

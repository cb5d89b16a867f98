// The entries of a chunk, one after another.
import { nameFromBytes } from '../../files/sandbox/names.ts'
import { varintAt, varintLength } from './block-runs.ts'
import {
  type Chunk,
  type EntryKind,
  type EntryOf,
  FIXED_BYTES,
  HARD_LINK,
  KINDS,
  keyOfPath,
  NO_CONTENT,
  pathOfOrderKey,
  SETTLED,
  type StoredEntry,
  viewOf,
} from './entries.ts'

export function decodeEntries(chunk: Chunk): StoredEntry[] {
  const entries: StoredEntry[] = []
  const next = createEntryDecoder(chunk)
  for (let entry = next(); entry; entry = next()) entries.push(entry)
  return entries
}

/** One entry after another, undefined at the end. The chunk's own digest has been checked before. */
export function createEntryDecoder<C extends Pick<Chunk, 'raw'>>(chunk: C): () => EntryOf<C> | undefined {
  const { raw } = chunk
  const source: ChunkView<C> = { chunk, view: viewOf(raw) }
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
    const fixedAt = at
    at += FIXED_BYTES
    const hardLink = flags & HARD_LINK ? `/${nameFromBytes(bytes())}` : null
    const target = kind === 'symlink' ? nameFromBytes(bytes()) : null
    const contentBytes = kind === 'file' ? varint() : 0
    at += contentBytes
    const entry = new EntryInChunk(source, key, kind, ordinal++, recordAt, fixedAt, at - contentBytes, at)
    entry.mode = mode
    entry.uid = uid
    entry.gid = gid
    entry.isSettled = (flags & SETTLED) !== 0
    entry.target = target
    entry.hardLink = hardLink
    return entry
  }
}

/** A class whose larger fields are made when they are asked for: of a file that has not changed, few are. */
class EntryInChunk<C extends Pick<Chunk, 'raw'>> implements EntryOf<C> {
  mode = 0
  uid = 0
  gid = 0
  isSettled = false
  target: string | null = null
  hardLink: string | null = null
  readonly key: string
  readonly kind: EntryKind
  readonly ordinal: number
  readonly recordAt: number
  readonly recordEnd: number
  private readonly source: ChunkView<C>
  private readonly fixedAt: number
  private readonly contentAt: number

  constructor(
    source: ChunkView<C>,
    key: string,
    kind: EntryKind,
    ordinal: number,
    recordAt: number,
    fixedAt: number,
    contentAt: number,
    recordEnd: number,
  ) {
    this.source = source
    this.key = key
    this.kind = kind
    this.ordinal = ordinal
    this.recordAt = recordAt
    this.fixedAt = fixedAt
    this.contentAt = contentAt
    this.recordEnd = recordEnd
  }

  get chunk(): C {
    return this.source.chunk
  }
  get path(): string {
    return pathOfOrderKey(this.key)
  }
  get mtimeNs(): bigint {
    return this.source.view.getBigInt64(this.fixedAt, true)
  }
  get ctimeNs(): bigint {
    return this.source.view.getBigInt64(this.fixedAt + 8, true)
  }
  get inode(): bigint {
    return this.source.view.getBigUint64(this.fixedAt + 16, true)
  }
  get sizeBytes(): number {
    const { view } = this.source
    return view.getUint32(this.fixedAt + 24, true) + view.getUint32(this.fixedAt + 28, true) * 0x1_0000_0000
  }
  get content(): Uint8Array {
    const { raw } = this.source.chunk
    return this.kind === 'file' ? raw.subarray(this.contentAt, this.recordEnd) : NO_CONTENT
  }
}

interface ChunkView<C> {
  chunk: C
  view: DataView
}

// A manifest is a backup: every entry in walk order, in chunks that are read one at a time, and a tail that says what the
// backup is and where each chunk is. It is written last, in one step; before that the backup does not exist.
import { BlobMissing, type BlobStore, type ByteRange } from '../../../blobs/store.ts'
import type { BackupReport } from '../../../contract/agent/agent-backups.ts'
import { fail } from '../../../contract/errors.ts'
import { asBuffer } from '../../../kit/bytes.ts'
import {
  type Chunk,
  type ChunkPlace,
  createEntryDecoder,
  createEntryEncoder,
  decodeEntries,
  type Entry,
  orderKey,
  type StoredEntry,
} from './entries.ts'
import { Damage, digest, FORMAT_VERSION, ID_BYTES, MAGIC_BYTES, MANIFEST_MAGIC, manifestBlob } from './format.ts'
import type { Sealer } from './seal.ts'

const CHUNK_BYTES = 256 * 1024
/** One that has grown by a few entries may end where it ended, so that the next can be taken as it stands. */
const LARGEST_BYTES = 320 * 1024
/** A smaller one is not closed for that, nor taken as it stands: small ones would become many. */
const SMALLEST_BYTES = 32 * 1024
const TRAILER_BYTES = 16 + ID_BYTES + MAGIC_BYTES

/** Everything that the database knows of a finished backup, so that its list can be had from the store alone. */
export interface ManifestMeta extends Omit<BackupReport, 'checksum'> {
  version: number
}

export interface ManifestWriter {
  /** A promise only where something must be waited for. */
  add(entry: Entry): Promise<void> | undefined
  /** An entry of an earlier manifest, unchanged. */
  addAsItStands(entry: StoredEntry): Promise<void> | undefined
  /** Once it returns, the backup exists and survives a power failure. */
  finish(meta: Omit<ManifestMeta, 'version'>): Promise<{ checksum: string; sizeBytes: number }>
  abort(): Promise<void>
}

export async function createManifest(
  blobs: BlobStore,
  sealer: Sealer,
  place: { serverId: string; backupId: string },
): Promise<ManifestWriter> {
  const writer = await blobs.create(manifestBlob(place.serverId, place.backupId))
  const encoder = createEntryEncoder()
  const chunks: ChunkPlace[] = []
  /** The first entries of a chunk of another manifest, in its order: once they are all, it is taken as it stands. */
  let held: StoredEntry[] = []
  let offset = MAGIC_BYTES
  let first = ''
  try {
    await writer.write(Buffer.from(MANIFEST_MAGIC))
  } catch (error) {
    await writer.abort()
    throw error
  }

  function begin(key: string): void {
    if (encoder.count === 0) first = Buffer.from(key, 'latin1').toString('base64')
  }

  async function flush(): Promise<void> {
    const entryCount = encoder.count
    if (entryCount === 0) return
    const { bytes, codec, rawLength, crc } = sealer.encode(encoder.take())
    await write(bytes, { rawLength, codec, crc, digest: hex(digest(bytes)), entryCount, first })
  }

  async function write(stored: Uint8Array, chunk: Omit<ChunkPlace, 'offset' | 'storedLength'>): Promise<void> {
    chunks.push({ ...chunk, offset, storedLength: stored.length })
    offset += stored.length
    await writer.write(stored)
  }

  function encodeHeld(): void {
    for (const entry of held) {
      begin(entry.key)
      encoder.addAsItStands(entry)
    }
    held = []
  }

  /** Whether the entry is the next of a chunk of which all so far are held. */
  function continuesChunk({ chunk, ordinal }: StoredEntry): boolean {
    if (encoder.count > 0 || chunk.place.rawLength < SMALLEST_BYTES) return false
    return ordinal === held.length && (ordinal === 0 || held[0]?.chunk === chunk)
  }

  /** Everything before it has been written or encoded. */
  function hold(entry: StoredEntry): Promise<void> | undefined {
    if (!continuesChunk(entry)) {
      encodeHeld()
      begin(entry.key)
      encoder.addAsItStands(entry)
      return encoder.sizeBytes >= LARGEST_BYTES ? flush() : undefined
    }
    const { stored, place } = entry.chunk
    held.push(entry)
    if (held.length < place.entryCount) return undefined
    held = []
    return write(stored, place)
  }

  return {
    add(entry) {
      const key = orderKey(entry.path)
      encodeHeld()
      begin(key)
      encoder.add(entry, key)
      return encoder.sizeBytes >= CHUNK_BYTES ? flush() : undefined
    },
    addAsItStands(entry) {
      if (entry.ordinal > 0) return hold(entry)
      encodeHeld()
      return encoder.sizeBytes < SMALLEST_BYTES ? hold(entry) : flush().then(() => hold(entry))
    },
    async finish(meta) {
      encodeHeld()
      await flush()
      const tail = sealer.encode(Buffer.from(JSON.stringify({ meta: { version: FORMAT_VERSION, ...meta }, chunks })))
      const checksum = digest(tail.bytes)
      const trailer = Buffer.alloc(16)
      for (const [index, value] of [tail.bytes.length, tail.rawLength, tail.codec, tail.crc].entries())
        trailer.writeUInt32LE(value, index * 4)
      await writer.write(Buffer.concat([tail.bytes, trailer, checksum, Buffer.from(MANIFEST_MAGIC)]))
      await writer.commit()
      return { checksum: hex(checksum), sizeBytes: offset + tail.bytes.length + TRAILER_BYTES }
    },
    abort: () => writer.abort(),
  }
}

export interface EntryStream {
  /** Undefined at the end. A promise only where a chunk begins. Throws Damage. */
  next(): StoredEntry | undefined | Promise<StoredEntry | undefined>
}

export interface Manifest {
  readonly meta: ManifestMeta
  readonly checksum: string
  readonly sizeBytes: number
  readonly entryCount: number
  /** Chunk by chunk, in order, from the chunk that may hold `fromKey`. Throws Damage, and `not_found` once it is deleted. */
  chunks(fromKey?: string): AsyncGenerator<StoredEntry[], void, undefined>
  entries(fromKey?: string): AsyncGenerator<StoredEntry, void, undefined>
  /** One entry at a time from `fromKey` on, each made when it is asked for: for whoever goes through them all. */
  stream(fromKey?: string): EntryStream
  /** Every chunk as bytes, for `visitIds`. Throws Damage. */
  rawChunks(): AsyncGenerator<Buffer, void, undefined>
  /** The entry of that very path. */
  find(path: string): Promise<StoredEntry | undefined>
}

/** Readable until it is disposed of, also when the backup is deleted meanwhile; see `BlobStore.open`. */
export type HeldManifest = Manifest & AsyncDisposable

export async function holdManifest(
  blobs: BlobStore,
  sealer: Sealer,
  place: { serverId: string; backupId: string },
): Promise<HeldManifest> {
  const name = manifestBlob(place.serverId, place.backupId)
  const reader = await blobs.open(name).catch(asNotFound)
  const held: ManifestBlobs = {
    stat: blobs.stat,
    get: (_, range) => reader.get(range),
  }
  try {
    const manifest = await openManifest(held, sealer, place)
    return { ...manifest, [Symbol.asyncDispose]: reader.close }
  } catch (error) {
    await reader.close()
    throw error
  }
}

/** What reading one manifest needs of a store. */
interface ManifestBlobs {
  stat(name: string): Promise<{ sizeBytes: number }>
  get(name: string, range: ByteRange): Promise<Uint8Array>
}

/** Backups are deleted at any time, also between two chunks of their manifest. */
function asNotFound(error: unknown): never {
  if (error instanceof BlobMissing) throw fail('not_found', 'The store has no such backup.', error)
  throw error
}

export async function openManifest(
  blobs: ManifestBlobs,
  sealer: Sealer,
  place: { serverId: string; backupId: string },
): Promise<Manifest> {
  const name = manifestBlob(place.serverId, place.backupId)
  const { meta, chunks, checksum, sizeBytes } = await readTail(blobs, sealer, name)
  if (meta.serverId !== place.serverId || meta.backupId !== place.backupId)
    throw new Damage(name, 'is the manifest of another backup')
  const firstKeys = chunks.map((chunk) => Buffer.from(chunk.first, 'base64').toString('latin1'))

  /** Whoever steps over directories comes back to the same chunk again and again. */
  let last: { place: ChunkPlace; entries: StoredEntry[] } | undefined

  async function read(place: ChunkPlace): Promise<StoredEntry[]> {
    if (last?.place === place) return last.entries
    const entries = decodeEntries(await readChunk(place))
    last = { place, entries }
    return entries
  }

  async function readChunk(place: ChunkPlace): Promise<Chunk> {
    const stored = await blobs.get(name, { offset: place.offset, length: place.storedLength }).catch(asNotFound)
    if (hex(digest(stored)) !== place.digest) throw new Damage(name, `the chunk at ${place.offset} is damaged`)
    return { raw: asBuffer(decoded(sealer, name, stored, place)), stored, place }
  }

  async function* readFrom(fromKey = ''): AsyncGenerator<StoredEntry[], void, undefined> {
    for (let index = lastNotAfter(firstKeys, fromKey); index < chunks.length; index++) {
      const chunk = chunks[index]
      if (chunk) yield await read(chunk)
    }
  }

  function stream(fromKey = ''): EntryStream {
    let index = lastNotAfter(firstKeys, fromKey)
    let take: () => StoredEntry | undefined = () => undefined

    function within(): StoredEntry | undefined {
      for (let entry = take(); entry; entry = take()) if (entry.key >= fromKey) return entry
      return undefined
    }

    async function beyond(): Promise<StoredEntry | undefined> {
      for (let chunk = chunks[index++]; chunk; chunk = chunks[index++]) {
        take = createEntryDecoder(await readChunk(chunk))
        const entry = within()
        if (entry) return entry
      }
      return undefined
    }

    return { next: () => within() ?? beyond() }
  }

  return {
    meta,
    checksum,
    sizeBytes,
    entryCount: chunks.reduce((sum, chunk) => sum + chunk.entryCount, 0),
    chunks: readFrom,
    stream,
    async *rawChunks() {
      for (const place of chunks) yield (await readChunk(place)).raw
    },
    async *entries(fromKey = '') {
      for await (const chunk of readFrom(fromKey)) for (const entry of chunk) if (entry.key >= fromKey) yield entry
    },
    async find(path) {
      const key = orderKey(path)
      const chunk = chunks[lastNotAfter(firstKeys, key)]
      return chunk && (await read(chunk)).find((entry) => entry.key === key)
    },
  }
}

/** The index of the last key that is not after `key`; 0 where all are. */
function lastNotAfter(keys: string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((keys[middle] ?? '') <= key) low = middle + 1
    else high = middle
  }
  return Math.max(0, low - 1)
}

async function readTail(blobs: ManifestBlobs, sealer: Sealer, name: string) {
  const read = (offset: number, length: number) => blobs.get(name, { offset, length }).catch(asNotFound)
  const { sizeBytes } = await blobs.stat(name).catch(asNotFound)
  if (sizeBytes < MAGIC_BYTES + TRAILER_BYTES) throw new Damage(name, 'too short for a manifest')
  // One read nearly always holds the whole tail.
  const guess = Math.min(sizeBytes, 64 * 1024)
  let end = asBuffer(await read(sizeBytes - guess, guess))
  const trailer = end.subarray(end.length - TRAILER_BYTES)
  const head = asBuffer(await read(0, MAGIC_BYTES))
  if (trailer.toString('latin1', 16 + ID_BYTES) !== MANIFEST_MAGIC || head.toString('latin1') !== MANIFEST_MAGIC)
    throw new Damage(name, 'does not begin and end as a manifest does')
  const [length, rawLength] = [trailer.readUInt32LE(0), trailer.readUInt32LE(4)]
  const [codec, crc] = [trailer.readUInt32LE(8), trailer.readUInt32LE(12)]
  if (length > sizeBytes - MAGIC_BYTES - TRAILER_BYTES) throw new Damage(name, 'its tail is longer than itself')
  if (length + TRAILER_BYTES > end.length)
    end = asBuffer(await read(sizeBytes - TRAILER_BYTES - length, length + TRAILER_BYTES))
  const stored = end.subarray(end.length - TRAILER_BYTES - length, end.length - TRAILER_BYTES)
  const checksum = digest(stored)
  if (!checksum.equals(trailer.subarray(16, 16 + ID_BYTES))) throw new Damage(name, 'its tail is damaged')
  const raw = decoded(sealer, name, stored, { codec, rawLength, crc })
  const tail = JSON.parse(Buffer.from(raw).toString()) as { meta: ManifestMeta; chunks: ChunkPlace[] }
  return { ...tail, checksum: hex(checksum), sizeBytes }
}

function decoded(
  sealer: Sealer,
  name: string,
  stored: Uint8Array,
  as: { codec: number; rawLength: number; crc: number },
): Uint8Array {
  try {
    return sealer.decode(stored, as)
  } catch {
    throw new Damage(name, 'cannot be decoded')
  }
}

const hex = (bytes: Buffer) => bytes.toString('hex')

// A manifest is a backup: every entry in walk order, in chunks that are read one at a time, and a tail that says what the
// backup is and where each chunk is: in the manifest, or in a part that it shares with others.
import type { BlobStore } from '../../../blobs/store.ts'
import type { BackupReport } from '../../../contract/agent/agent-backups.ts'
import { asBuffer } from '../../../kit/bytes.ts'
import { asNotFound, createChunkReader, decodeOwn, type ManifestBlobs, sharedParts } from './chunk-reader.ts'
import { type Chunk, type ChunkPlace, orderKey, type PartRef, type SharedPart, type StoredEntry } from './entries.ts'
import { createEntryDecoder, decodeEntries } from './entry-decoder.ts'
import { Damage, digest, ID_BYTES, MAGIC_BYTES, MANIFEST_MAGIC, manifestBlob } from './format.ts'
import type { Sealer } from './seal.ts'

const TRAILER_BYTES = 16 + ID_BYTES + MAGIC_BYTES

/** Everything that the database knows of a finished backup, so that its list can be had from the store alone. */
export interface ManifestMeta extends Omit<BackupReport, 'checksum'> {
  version: number
}

export interface EntryStream {
  /** Undefined at the end. A promise only where a chunk begins. Throws Damage. */
  next(): StoredEntry | undefined | Promise<StoredEntry | undefined>
}

export interface RawChunk extends Chunk {
  /** What `seen` has it by, where the manifest has it from a part. */
  sharedKey: string | undefined
}

export interface Manifest {
  readonly meta: ManifestMeta
  readonly checksum: string
  readonly places: readonly ChunkPlace[]
  /** The order key of the first entry of each. */
  readonly firstKeys: readonly string[]
  /** What it shares with other manifests of the server, and cannot be read without. */
  readonly parts: readonly SharedPart[]
  /** The chunk in that of the places. Throws as `chunks` does. */
  readChunk(index: number): Promise<Chunk>
  /** Its entries. */
  chunkAt(index: number): Promise<StoredEntry[]>
  /** Chunk by chunk, in order, from the chunk that may hold `fromKey`. Throws Damage, and `not_found` once it is deleted. */
  chunks(fromKey?: string): AsyncGenerator<StoredEntry[], void, undefined>
  entries(fromKey?: string): AsyncGenerator<StoredEntry, void, undefined>
  /** One entry at a time from `fromKey` on, each made when it is asked for: for whoever goes through them all. */
  stream(fromKey?: string): EntryStream
  /** Every chunk as bytes, for `visitIds`, but for those in `seen`, to which sound ones of parts are added. Throws Damage. */
  rawChunks(seen?: Set<string>): AsyncGenerator<RawChunk, void, undefined>
  /** Of its chunks that are in parts: what `seen` has them by. */
  sharedKeys(): Iterable<string>
  /** Throws Damage where a chunk that is in the manifest is not what was written, whatever the parts are like. */
  checkOwn(): Promise<void>
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
    list: blobs.list,
    get: (blob, range) => (blob === name && range ? reader.get(range) : blobs.get(blob, range)),
  }
  try {
    const manifest = await openManifest(held, sealer, place)
    return { ...manifest, [Symbol.asyncDispose]: reader.close }
  } catch (error) {
    await reader.close()
    throw error
  }
}

export async function openManifest(
  blobs: ManifestBlobs,
  sealer: Sealer,
  place: { serverId: string; backupId: string },
): Promise<Manifest> {
  const name = manifestBlob(place.serverId, place.backupId)
  const { meta, chunks, parts: listed = [], checksum } = await readTail(blobs, sealer, name)
  if (meta.serverId !== place.serverId || meta.backupId !== place.backupId)
    throw new Damage(name, 'is the manifest of another backup')
  const firstKeys = chunks.map((chunk) => Buffer.from(chunk.first, 'base64').toString('latin1'))
  const parts = sharedParts(name, listed, chunks)
  const { serverId } = place
  const reader = () => createChunkReader({ blobs, sealer, serverId, name, chunks, parts })
  const readChunk = reader()

  /** Whoever steps over directories comes back to the same chunk again and again. */
  let last: { index: number; entries: StoredEntry[] } | undefined

  async function chunkAt(index: number): Promise<StoredEntry[]> {
    if (last?.index === index) return last.entries
    const entries = decodeEntries(await readChunk(index))
    last = { index, entries }
    return entries
  }

  async function* readFrom(fromKey = ''): AsyncGenerator<StoredEntry[], void, undefined> {
    for (let index = lastNotAfter(firstKeys, fromKey); index < chunks.length; index++) yield await chunkAt(index)
  }

  function stream(fromKey = ''): EntryStream {
    const readNext = reader()
    let index = lastNotAfter(firstKeys, fromKey)
    let take: () => StoredEntry | undefined = () => undefined

    function within(): StoredEntry | undefined {
      for (let entry = take(); entry; entry = take()) if (entry.key >= fromKey) return entry
      return undefined
    }

    async function beyond(): Promise<StoredEntry | undefined> {
      while (index < chunks.length) {
        take = createEntryDecoder(await readNext(index++))
        const entry = within()
        if (entry) return entry
      }
      return undefined
    }

    return { next: () => within() ?? beyond() }
  }

  const sharedKeyOf = ({ part, offset }: ChunkPlace) =>
    part === undefined ? undefined : `${parts[part]?.id} ${offset}`

  return {
    meta,
    checksum,
    places: chunks,
    parts,
    readChunk,
    firstKeys,
    chunkAt,
    chunks: readFrom,
    stream,
    async *rawChunks(seen) {
      const readNext = reader()
      for (const [index, place] of chunks.entries()) {
        const sharedKey = sharedKeyOf(place)
        if (sharedKey !== undefined && seen?.has(sharedKey)) continue
        yield { ...(await readNext(index)), sharedKey }
        if (sharedKey !== undefined) seen?.add(sharedKey)
      }
    },
    *sharedKeys() {
      for (const place of chunks) {
        const key = sharedKeyOf(place)
        if (key !== undefined) yield key
      }
    },
    async checkOwn() {
      const readNext = reader()
      for (const [index, { part }] of chunks.entries()) if (part === undefined) await readNext(index)
    },
    async *entries(fromKey = '') {
      for await (const chunk of readFrom(fromKey)) for (const entry of chunk) if (entry.key >= fromKey) yield entry
    },
    async find(path) {
      const key = orderKey(path)
      if (chunks.length === 0) return undefined
      return (await chunkAt(lastNotAfter(firstKeys, key))).find((entry) => entry.key === key)
    },
  }
}

/** The index of the last key that is not after `key`; 0 where all are. */
export function lastNotAfter(keys: readonly string[], key: string): number {
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
  const raw = decodeOwn(sealer, name, stored, { codec, rawLength, crc })
  const tail = JSON.parse(raw.toString()) as { meta: ManifestMeta; chunks: ChunkPlace[]; parts?: PartRef[] }
  return { ...tail, checksum: checksum.toString('hex') }
}

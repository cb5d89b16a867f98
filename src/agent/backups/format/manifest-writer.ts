// Writes a manifest. What is new in it stays in its own blob while that is little, and becomes a part otherwise; chunks that
// an earlier manifest has in a part are only named. It is written last, in one step; before that the backup does not exist.
import type { BlobStore } from '../../../blobs/store.ts'
import {
  type Chunk,
  type ChunkPlace,
  createEntryEncoder,
  type Entry,
  orderKey,
  type PartRef,
  type SharedPart,
  type StoredEntry,
} from './entries.ts'
import { decodeEntries } from './entry-decoder.ts'
import {
  digest,
  FORMAT_VERSION,
  MAGIC_BYTES,
  MANIFEST_MAGIC,
  manifestBlob,
  PARTS_VERSION,
  PATCHES_VERSION,
  partBlob,
} from './format.ts'
import type { Manifest, ManifestMeta } from './manifest.ts'
import { createPart, type PartWriter } from './parts.ts'
import type { Sealer } from './seal.ts'
import { raiseVersion } from './store-format.ts'

/** How a manifest is cut. */
export interface ManifestSizes {
  /** Of a chunk, decoded: what one changed entry costs, half of it once compressed. */
  chunkBytes: number
  /** Of what is new, in the manifest itself: a blob of its own would cost more than to write so much once more. */
  ownBytes: number
}

export const MANIFEST_SIZES: ManifestSizes = { chunkBytes: 64 * 1024, ownBytes: 32 * 1024 }
/** Of `chunkBytes`: one that has grown by a few entries may end where it ended, so that the next is taken as it stands. */
const LARGEST = 1.25
/** Of `chunkBytes`: a smaller one is not closed for that, nor taken as it stands, since small ones would become many. */
const SMALLEST = 0.25

export interface ManifestWriter {
  /** `key`: the order key of its path. A promise only where something must be waited for. */
  add(entry: Entry, key?: string): Promise<void> | undefined
  /** An entry of an earlier manifest of the same server, unchanged. */
  addAsItStands(entry: StoredEntry): Promise<void> | undefined
  /** All entries of a chunk of such a manifest, unchanged. */
  addChunk(chunk: Chunk): Promise<void> | undefined
  /**
   * A chunk of the last manifest that cannot be read. What it listed becomes a chunk again, the same if nothing of it has
   * changed, and from now on what is new goes to a part, however little: there the others that need it find it.
   */
  replace(lost: ChunkPlace): void
  /** Some of the blocks are listed as patched. */
  usePatches(): void
  /** Once it returns, the backup exists and survives a power failure. */
  finish(meta: Omit<ManifestMeta, 'version'>): Promise<{ meta: ManifestMeta; checksum: string }>
  /** Lets go of everything. */
  abort(): Promise<void>
  /** After `abort`, where the manifest is known not to be there: what was written for it goes. */
  giveBack(): Promise<void>
}

interface Place {
  serverId: string
  backupId: string
}

export function createManifest(
  blobs: BlobStore,
  sealer: Sealer,
  { serverId, backupId }: Place,
  previous: Pick<Manifest, 'meta' | 'places' | 'parts'> | undefined,
  { chunkBytes, ownBytes }: ManifestSizes = MANIFEST_SIZES,
): ManifestWriter {
  const encoder = createEntryEncoder()
  const places = createPlaces(blobs, sealer, serverId, ownBytes)
  const smallestBytes = chunkBytes * SMALLEST
  const largestBytes = chunkBytes * LARGEST
  /** The first entries of a chunk of another manifest, in its order: once they are all, it is taken as it stands. */
  let held: StoredEntry[] = []
  /** How many entries chunks had that cannot be read, by the keys of their first. */
  const lost = new Map<string, number>()
  const known = chunksOf(previous)
  /** Where chunks of the last manifest begin, by the same keys: they begin there again. */
  const firsts = new Set(previous?.places.map((place) => place.first))
  let first = ''
  /** Also where what is taken over may have some. */
  let hasPatches = previous?.meta.version === PATCHES_VERSION

  const listedKey = (key: string) => Buffer.from(key, 'latin1').toString('base64')

  function begin(key: string): void {
    if (encoder.count === 0) first = listedKey(key)
  }

  function encode(entry: Entry, key: string): Promise<void> | undefined {
    begin(key)
    encoder.add(entry, key)
    return isFull() ? flush() : undefined
  }

  function isFull(): boolean {
    const wanted = lost.get(first)
    if (wanted !== undefined) return encoder.count >= wanted
    return encoder.sizeBytes >= (firsts.has(first) ? largestBytes : chunkBytes)
  }

  async function flush(): Promise<void> {
    const entryCount = encoder.count
    if (entryCount === 0) return
    const raw = encoder.take()
    const same = known.size > 0 ? known.get(sealer.idOf(raw).toString('hex')) : undefined
    if (same) {
      places.refer(same.part, same.place)
      return
    }
    const { bytes, codec, rawLength, crc } = sealer.encode(raw)
    await places.write(bytes, raw, { rawLength, codec, crc, entryCount, first })
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
    if (encoder.count > 0 || chunk.place.rawLength < smallestBytes) return false
    return ordinal === held.length && (ordinal === 0 || held[0]?.chunk === chunk)
  }

  /** Everything before it has been written or encoded. */
  function hold(entry: StoredEntry): Promise<void> | undefined {
    if (!continuesChunk(entry)) {
      encodeHeld()
      begin(entry.key)
      encoder.addAsItStands(entry)
      return encoder.sizeBytes >= largestBytes ? flush() : undefined
    }
    held.push(entry)
    if (held.length < entry.chunk.place.entryCount) return undefined
    held = []
    return takeWhole(entry.chunk)
  }

  function takeWhole({ stored, raw, place, part }: Chunk): Promise<void> | undefined {
    if (!part || part.isSparse) return places.write(stored, raw, place)
    places.refer(part, place)
    return undefined
  }

  async function holdAll(chunk: Chunk): Promise<void> {
    for (const entry of decodeEntries(chunk)) await hold(entry)
  }

  return {
    add(entry, key = orderKey(entry.path)) {
      encodeHeld()
      const begins = firsts.size > 0 && encoder.sizeBytes >= smallestBytes && firsts.has(listedKey(key))
      return begins ? flush().then(() => encode(entry, key)) : encode(entry, key)
    },
    addAsItStands(entry) {
      if (entry.ordinal > 0) return hold(entry)
      encodeHeld()
      return encoder.sizeBytes < smallestBytes ? hold(entry) : flush().then(() => hold(entry))
    },
    addChunk(chunk) {
      encodeHeld()
      const add = () => (encoder.count > 0 || chunk.place.rawLength < smallestBytes ? holdAll(chunk) : takeWhole(chunk))
      return encoder.sizeBytes < smallestBytes ? add() : flush().then(add)
    },
    replace({ first: key, entryCount, id }) {
      // What was in another manifest itself, nobody else needs.
      if (id === undefined) return
      known.delete(id)
      lost.set(key, entryCount)
      places.share()
    },
    usePatches() {
      hasPatches = true
    },
    async finish(given) {
      if (hasPatches) await raiseVersion(blobs, PATCHES_VERSION)
      encodeHeld()
      await flush()
      const { own, chunks, parts } = await places.finish()
      const version = hasPatches ? PATCHES_VERSION : parts.length > 0 ? PARTS_VERSION : FORMAT_VERSION
      const meta = { version, ...given }
      const listed = parts.length > 0 ? { meta, chunks, parts } : { meta, chunks }
      const tail = sealer.encode(Buffer.from(JSON.stringify(listed)))
      const checksum = digest(tail.bytes)
      const trailer = Buffer.alloc(16)
      for (const [index, value] of [tail.bytes.length, tail.rawLength, tail.codec, tail.crc].entries())
        trailer.writeUInt32LE(value, index * 4)
      const magic = Buffer.from(MANIFEST_MAGIC)
      await blobs.put(
        manifestBlob(serverId, backupId),
        Buffer.concat([magic, ...own, tail.bytes, trailer, checksum, magic]),
      )
      return { meta, checksum: checksum.toString('hex') }
    },
    abort: places.abort,
    giveBack: places.giveBack,
  }
}

/**
 * By their ids, those that can be named. Files with several links are described anew by every backup, mostly as they were;
 * whoever adds them has read what the last manifest lists of them.
 */
function chunksOf(previous: Pick<Manifest, 'places' | 'parts'> | undefined) {
  const chunks = new Map<string, { part: SharedPart; place: ChunkPlace }>()
  for (const place of previous?.places ?? []) {
    const part = place.part === undefined ? undefined : previous?.parts[place.part]
    if (part && !part.isSparse && place.id !== undefined) chunks.set(place.id, { part, place })
  }
  return chunks
}

type Described = Omit<ChunkPlace, 'offset' | 'storedLength' | 'digest' | 'part' | 'id'>

/** Where each chunk goes: into the manifest, into a part of its own, or nowhere since it is in another's. */
function createPlaces(blobs: BlobStore, sealer: Sealer, serverId: string, ownBytesAtMost: number) {
  const chunks: ChunkPlace[] = []
  const parts: PartRef[] = []
  const indexes = new Map<string, number>()
  /** What is new, until it is too much for the manifest itself. */
  let own: { at: number; stored: Uint8Array; raw: Uint8Array; described: Described }[] = []
  let ownBytes = 0
  let mayOwn = true
  let part: PartWriter | undefined
  let isDurable = false

  function indexOf({ id, sizeBytes }: PartRef): number {
    const known = indexes.get(id)
    if (known !== undefined) return known
    indexes.set(id, parts.length)
    return parts.push({ id, sizeBytes }) - 1
  }

  async function toPart(): Promise<void> {
    part ??= await createPart(blobs, serverId)
    const index = indexOf({ id: part.id, sizeBytes: 0 })
    const moved = own
    own = []
    ownBytes = 0
    for (const { at, stored, raw, described } of moved) {
      const id = sealer.idOf(raw).toString('hex')
      const offset = await part.append(stored, { ...described, id })
      chunks[at] = { ...described, offset, storedLength: stored.length, part: index, id }
    }
  }

  return {
    async write(stored: Uint8Array, raw: Uint8Array, from: Described): Promise<void> {
      const { rawLength, codec, crc, entryCount, first } = from
      const described = { rawLength, codec, crc, entryCount, first }
      const at = chunks.push({ ...described, offset: 0, storedLength: stored.length }) - 1
      own.push({ at, stored, raw, described })
      ownBytes += stored.length
      if (part || !mayOwn || ownBytes > ownBytesAtMost) await toPart()
    },
    refer(shared: SharedPart, { offset, storedLength, rawLength, codec, crc, id = '', entryCount, first }: ChunkPlace) {
      chunks.push({ offset, storedLength, rawLength, codec, crc, entryCount, first, part: indexOf(shared), id })
    },
    share() {
      mayOwn = false
    },
    /** The parts are durable then. `own` is what the manifest holds itself, right after its first bytes. */
    async finish() {
      if (own.length > 0 && !mayOwn) await toPart()
      let offset = MAGIC_BYTES
      for (const { at, stored, described } of own) {
        const hex = digest(stored).toString('hex')
        chunks[at] = { ...described, offset, storedLength: stored.length, digest: hex }
        offset += stored.length
      }
      if (part) {
        const sizeBytes = await part.finish()
        isDurable = true
        parts[indexOf({ id: part.id, sizeBytes })] = { id: part.id, sizeBytes }
      }
      return { own: own.map(({ stored }) => stored), chunks, parts }
    },
    async abort() {
      if (!isDurable) await part?.abort()
    },
    async giveBack() {
      if (part) await blobs.delete(partBlob(serverId, part.id))
    },
  }
}

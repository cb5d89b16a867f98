// Reads the chunks of a manifest from wherever they are: in itself, or in parts that it shares with others. A chunk that is
// damaged in its part will do from any other that has it.
import { BlobMissing, type BlobStore } from '../../../blobs/store.ts'
import { fail } from '../../../contract/errors.ts'
import { asBuffer } from '../../../kit/bytes.ts'
import type { Chunk, ChunkPlace, PartRef, SharedPart } from './entries.ts'
import { Damage, digest, lastSegment, partBlob } from './format.ts'
import { decodeNamed, isPartRef, type PlacedRow, readPartTable } from './parts.ts'
import type { Sealer } from './seal.ts'

/** Chunks that follow each other are read together up to this size. */
const READ_BYTES = 256 * 1024

/** What reading one manifest needs of a store. Without `list`, what is damaged in a part is not looked for elsewhere. */
export type ManifestBlobs = Pick<BlobStore, 'stat' | 'get'> & Partial<Pick<BlobStore, 'list'>>

export interface ChunkedManifest {
  blobs: ManifestBlobs
  sealer: Sealer
  serverId: string
  /** Of its own blob. */
  name: string
  chunks: readonly ChunkPlace[]
  parts: readonly SharedPart[]
}

/** The chunk of that index. Throws Damage, and `not_found` where the backup is deleted. Quicker where they follow each other. */
export type ChunkReader = (index: number) => Promise<Chunk>

/** Each part of the manifest, with how much of it the chunks need. Throws Damage. */
export function sharedParts(name: string, parts: readonly PartRef[], chunks: readonly ChunkPlace[]): SharedPart[] {
  const used = new Array<number>(parts.length).fill(0)
  for (const { part, storedLength } of chunks) {
    if (part === undefined) continue
    if (!Object.hasOwn(used, part)) throw new Damage(name, 'names a part that it does not list')
    used[part] = (used[part] ?? 0) + storedLength
  }
  return parts.map((part, index) => {
    if (!isPartRef(part)) throw new Damage(name, 'lists what is no part')
    return { ...part, isSparse: (used[index] ?? 0) * 2 < part.sizeBytes }
  })
}

interface Run {
  from: number
  end: number
  offset: number
  bytes: Uint8Array
}

export function createChunkReader(manifest: ChunkedManifest): ChunkReader {
  const { blobs, sealer, name, chunks, parts } = manifest
  let run: Run | undefined
  let last = -1

  const blobOf = ({ part }: ChunkPlace) =>
    part === undefined ? name : partBlob(manifest.serverId, parts[part]?.id ?? '')

  /** The chunk and, where they are wanted one after another, those that follow it in the same blob. */
  async function fetch(from: number, isInOrder: boolean): Promise<Run> {
    const first = placeAt(chunks, from)
    const offset = first.offset
    let length = first.storedLength
    let end = from + 1
    for (let next = chunks[end]; isInOrder && next; next = chunks[++end]) {
      const isNeighbour = next.part === first.part && next.offset === offset + length
      if (!isNeighbour || length + next.storedLength > READ_BYTES) break
      length += next.storedLength
    }
    const blob = blobOf(first)
    const bytes = await blobs.get(blob, { offset, length }).catch((error) => whyMissing(manifest, blob, error))
    return { from, end, offset, bytes }
  }

  async function read(index: number, place: ChunkPlace): Promise<Chunk> {
    const held = run && run.from <= index && index < run.end ? run : await fetch(index, index === last + 1)
    run = held
    last = index
    const at = place.offset - held.offset
    const stored = held.bytes.subarray(at, at + place.storedLength)
    const { part, id } = place
    if (part !== undefined && id !== undefined) {
      const raw = decodeNamed(sealer, blobOf(place), stored, { ...place, id })
      return { raw, stored, place, part: parts[part] }
    }
    if (digest(stored).toString('hex') !== place.digest)
      throw new Damage(name, `the chunk at ${place.offset} is damaged`)
    return { raw: decodeOwn(sealer, name, stored, place), stored, place, part: undefined }
  }

  return async (index) => {
    const place = placeAt(chunks, index)
    try {
      return await read(index, place)
    } catch (error) {
      const spare = error instanceof Damage ? await findSpare(manifest, place) : undefined
      if (!spare) throw error
      return spare
    }
  }
}

function placeAt(chunks: readonly ChunkPlace[], index: number): ChunkPlace {
  const place = chunks[index]
  if (!place) throw new Error(`there is no chunk ${index}`)
  return place
}

export function decodeOwn(
  sealer: Sealer,
  name: string,
  stored: Uint8Array,
  as: { codec: number; rawLength: number; crc: number },
): Buffer {
  try {
    return asBuffer(sealer.decode(stored, as))
  } catch {
    throw new Damage(name, 'cannot be decoded')
  }
}

/** Backups are deleted at any time, also between two chunks of their manifest. */
export function asNotFound(error: unknown): never {
  if (error instanceof BlobMissing) throw fail('not_found', 'The store has no such backup.', error)
  throw error
}

/** A part goes once no manifest names it: one that is gone before its manifest is lost. */
async function whyMissing({ blobs, name }: ChunkedManifest, blob: string, error: unknown): Promise<never> {
  if (blob === name || !(error instanceof BlobMissing)) return asNotFound(error)
  await blobs.stat(name).catch(asNotFound)
  throw new Damage(blob, 'is not there')
}

/**
 * The same chunk in another part of the server, by their own tables. A backup that meets a chunk which it cannot read writes it
 * anew, so all that named it can be read again.
 */
async function findSpare({ blobs, sealer, serverId }: ChunkedManifest, place: ChunkPlace): Promise<Chunk | undefined> {
  const { id } = place
  if (id === undefined || !blobs.list) return undefined
  for await (const { name, sizeBytes } of blobs.list(partBlob(serverId, ''))) {
    const found = await unlessLost(async () => {
      const row = (await readPartTable(blobs, name)).find((one) => one.id === id)
      return row && (await readRow({ blobs, sealer }, name, row))
    })
    const part = { id: lastSegment(name), sizeBytes, isSparse: false }
    if (found) return { raw: found.raw, stored: found.stored, place: { ...place, ...found.row }, part }
  }
  return undefined
}

async function readRow({ blobs, sealer }: Pick<ChunkedManifest, 'blobs' | 'sealer'>, name: string, row: PlacedRow) {
  const stored = await blobs.get(name, { offset: row.offset, length: row.storedLength })
  return { row, stored, raw: decodeNamed(sealer, name, stored, row) }
}

async function unlessLost<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof Damage || error instanceof BlobMissing) return undefined
    throw error
  }
}

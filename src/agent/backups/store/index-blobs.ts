// What each pack contains, stored apart from the packs, so that opening a store reads a few blobs and not every pack.
// Losing them loses nothing: they can be rebuilt from the packs.
import { BlobMissing, type BlobStore } from '../../../blobs/store.ts'
import { asBuffer } from '../../../kit/bytes.ts'
import { newId } from '../../../kit/ids.ts'
import { Damage, digest, ID_BYTES, INDEX_MAGIC, indexBlob, MAGIC_BYTES } from '../format/format.ts'
import type { Sealer } from '../format/seal.ts'
import type { WrittenPack } from './packs.ts'

const PACK_ID_BYTES = 16
const HEAD_BYTES = MAGIC_BYTES + 12 + ID_BYTES
/** Of tables in one index blob: it is made and decoded whole, so it must not grow with the store. */
const INDEX_BYTES = 2 * 1024 * 1024

/** How many blobs it takes to list packs whose tables have so many bytes together. */
export const indexesFor = (tableBytes: number) => Math.ceil(tableBytes / INDEX_BYTES)

export interface IndexWriter {
  /** The pack must be durable. Nothing of it is held for longer than until the next index blob is full. */
  add(pack: WrittenPack): Promise<void>
  /** Once it returns, everything added is listed durably. */
  finish(): Promise<void>
  /** The blobs written so far. */
  readonly names: readonly string[]
}

export function createIndexWriter(blobs: BlobStore, sealer: Sealer): IndexWriter {
  const names: string[] = []
  let packs: WrittenPack[] = []
  let bytes = 0

  async function flush(): Promise<void> {
    if (packs.length === 0) return
    const blob = encodeIndex(sealer, packs)
    packs = []
    bytes = 0
    const name = indexBlob(newId('job').slice(4))
    names.push(name)
    await blobs.put(name, blob)
  }

  return {
    names,
    async add(pack) {
      packs.push(pack)
      bytes += pack.table.length
      if (bytes >= INDEX_BYTES) await flush()
    },
    finish: flush,
  }
}

function encodeIndex(sealer: Sealer, packs: WrittenPack[]): Buffer {
  const parts: Buffer[] = []
  for (const { packId, sizeBytes, table } of packs) {
    const head = Buffer.alloc(PACK_ID_BYTES + 8)
    head.write(packId, 'hex')
    head.writeUInt32LE(sizeBytes, PACK_ID_BYTES)
    head.writeUInt32LE(table.length, PACK_ID_BYTES + 4)
    parts.push(head, table)
  }
  const { bytes, codec, rawLength, crc } = sealer.encode(Buffer.concat(parts))
  const numbers = Buffer.alloc(12)
  for (const [index, value] of [rawLength, codec, crc].entries()) numbers.writeUInt32LE(value, index * 4)
  const body = Buffer.concat([numbers, bytes])
  return Buffer.concat([Buffer.from(INDEX_MAGIC), digest(body), body])
}

/** Throws Damage where it is not what was written. */
export async function readIndex(blobs: Pick<BlobStore, 'get'>, sealer: Sealer, name: string): Promise<WrittenPack[]> {
  const blob = asBuffer(await blobs.get(name))
  if (blob.length < HEAD_BYTES || blob.toString('latin1', 0, MAGIC_BYTES) !== INDEX_MAGIC)
    throw new Damage(name, 'does not begin as an index does')
  const body = blob.subarray(MAGIC_BYTES + ID_BYTES)
  if (!digest(body).equals(blob.subarray(MAGIC_BYTES, MAGIC_BYTES + ID_BYTES))) throw new Damage(name, 'is damaged')
  const [rawLength, codec, crc] = [body.readUInt32LE(0), body.readUInt32LE(4), body.readUInt32LE(8)]
  let raw: Buffer
  try {
    raw = asBuffer(sealer.decode(body.subarray(12), { rawLength, codec, crc }))
  } catch {
    throw new Damage(name, 'cannot be decoded')
  }
  const packs: WrittenPack[] = []
  for (let at = 0; at < raw.length; ) {
    const packId = raw.toString('hex', at, at + PACK_ID_BYTES)
    const sizeBytes = raw.readUInt32LE(at + PACK_ID_BYTES)
    const tableAt = at + PACK_ID_BYTES + 8
    at = tableAt + raw.readUInt32LE(at + PACK_ID_BYTES + 4)
    packs.push({ packId, sizeBytes, table: raw.subarray(tableAt, at) })
  }
  return packs
}

/**
 * What every pack that an index lists holds, each once. An index that is damaged is `skipped`; one that is gone since it
 * was listed, silently.
 */
export async function* listedPacks(
  blobs: BlobStore,
  sealer: Sealer,
  skipped: (damage: Damage) => void,
): AsyncGenerator<WrittenPack, void, undefined> {
  const seen = new Set<string>()
  for await (const { name } of blobs.list('index/')) {
    for (const pack of await readListedIndex(blobs, sealer, name, skipped)) {
      if (!seen.has(pack.packId)) yield pack
      seen.add(pack.packId)
    }
  }
}

/** One of the indexes that `listedPacks` reads. */
export async function readListedIndex(
  blobs: Pick<BlobStore, 'get'>,
  sealer: Sealer,
  name: string,
  skipped: (damage: Damage) => void,
): Promise<WrittenPack[]> {
  try {
    return await readIndex(blobs, sealer, name)
  } catch (error) {
    if (error instanceof Damage) skipped(error)
    else if (!(error instanceof BlobMissing)) throw error
    return []
  }
}

// What each pack holds, written down apart from the packs, so that opening a store reads a few blobs and not every pack.
// Nothing is lost with them: they can be had again from the packs.
import type { BlobStore } from '../../blobs/store.ts'
import { newId } from '../../kit/ids.ts'
import { Damage, digest, ID_BYTES, INDEX_MAGIC, indexBlob, MAGIC_BYTES } from './format.ts'
import type { WrittenPack } from './packs.ts'
import type { Sealer } from './seal.ts'

const PACK_ID_BYTES = 16
const HEAD_BYTES = MAGIC_BYTES + 12 + ID_BYTES
/** An index blob is decoded whole, so it must not grow with the store. */
const PACKS_AT_MOST = 512

export async function writeIndexes(blobs: BlobStore, sealer: Sealer, packs: WrittenPack[]): Promise<string[]> {
  const names: string[] = []
  for (let at = 0; at < packs.length; at += PACKS_AT_MOST) {
    const name = indexBlob(newId('job').slice(4))
    await blobs.put(name, encodeIndex(sealer, packs.slice(at, at + PACKS_AT_MOST)))
    names.push(name)
  }
  return names
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
export async function readIndex(blobs: BlobStore, sealer: Sealer, name: string): Promise<WrittenPack[]> {
  const blob = Buffer.from(await blobs.get(name))
  if (blob.length < HEAD_BYTES || blob.toString('latin1', 0, MAGIC_BYTES) !== INDEX_MAGIC)
    throw new Damage(name, 'does not begin as an index does')
  const body = blob.subarray(MAGIC_BYTES + ID_BYTES)
  if (!digest(body).equals(blob.subarray(MAGIC_BYTES, MAGIC_BYTES + ID_BYTES))) throw new Damage(name, 'is damaged')
  const [rawLength, codec, crc] = [body.readUInt32LE(0), body.readUInt32LE(4), body.readUInt32LE(8)]
  let raw: Buffer
  try {
    raw = Buffer.from(sealer.decode(body.subarray(12), { rawLength, codec, crc }))
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

// A part: chunks of manifests, one after another, then a table of them. A backup writes one for what is new in its manifest,
// and the manifests after it name it for what has not changed. It is durable before a manifest that names it, and goes when
// none does any more.
import { randomBytes } from 'node:crypto'
import type { BlobStore } from '../../../blobs/store.ts'
import { asBuffer } from '../../../kit/bytes.ts'
import type { PartRef } from './entries.ts'
import { Damage, digest, ID_BYTES, MAGIC_BYTES, PART_MAGIC, PARTS_VERSION, partBlob } from './format.ts'
import type { Sealer } from './seal.ts'
import { raiseVersion } from './store-format.ts'

const ROW_BYTES = 16 + ID_BYTES
const TRAILER_BYTES = 4 + ID_BYTES + MAGIC_BYTES
const PART_ID = /^[0-9a-f]{32}$/

/** A chunk as the table lists it. */
export interface PartRow {
  storedLength: number
  rawLength: number
  codec: number
  crc: number
  /** Hex. */
  id: string
}

export interface PlacedRow extends PartRow {
  offset: number
}

export interface PartWriter {
  readonly id: string
  /** Resolves with where in the part the chunk begins. */
  append(stored: Uint8Array, row: Omit<PartRow, 'storedLength'>): Promise<number>
  /** Once it returns, the part is whole and survives a power failure. Its size. */
  finish(): Promise<number>
  abort(): Promise<void>
}

export async function createPart(blobs: BlobStore, serverId: string): Promise<PartWriter> {
  await raiseVersion(blobs, PARTS_VERSION)
  const id = randomBytes(16).toString('hex')
  const writer = await blobs.create(partBlob(serverId, id))
  const rows: Buffer[] = []
  let offset = 0

  async function write(bytes: Uint8Array): Promise<number> {
    const from = offset
    offset += bytes.length
    await writer.write(bytes)
    return from
  }

  try {
    await write(Buffer.from(PART_MAGIC))
  } catch (error) {
    await writer.abort()
    throw error
  }
  return {
    id,
    append(stored, row) {
      rows.push(encodeRow({ ...row, storedLength: stored.length }))
      return write(stored)
    },
    async finish() {
      const table = Buffer.concat(rows)
      const length = Buffer.alloc(4)
      length.writeUInt32LE(table.length)
      await write(Buffer.concat([table, length, digest(table), Buffer.from(PART_MAGIC)]))
      await writer.commit()
      return offset
    },
    abort: () => writer.abort(),
  }
}

function encodeRow({ storedLength, rawLength, codec, crc, id }: PartRow): Buffer {
  const row = Buffer.alloc(ROW_BYTES)
  for (const [index, value] of [storedLength, rawLength, codec, crc].entries()) row.writeUInt32LE(value, index * 4)
  row.write(id, 16, 'hex')
  return row
}

/** A manifest is not trusted further than its digest. */
export const isPartRef = ({ id, sizeBytes }: PartRef) =>
  typeof id === 'string' && PART_ID.test(id) && Number.isSafeInteger(sizeBytes)

/** What the part holds, by its own table. Throws Damage where that is not what was written, and `BlobMissing`. */
export async function readPartTable(blobs: Pick<BlobStore, 'stat' | 'get'>, name: string): Promise<PlacedRow[]> {
  const { sizeBytes } = await blobs.stat(name)
  if (sizeBytes < MAGIC_BYTES + TRAILER_BYTES) throw new Damage(name, 'too short for a part')
  const read = async (offset: number, length: number) => asBuffer(await blobs.get(name, { offset, length }))
  const head = await read(0, MAGIC_BYTES)
  const trailer = await read(sizeBytes - TRAILER_BYTES, TRAILER_BYTES)
  if (trailer.length < TRAILER_BYTES) throw new Damage(name, 'is shorter than it was')
  if (head.toString('latin1') !== PART_MAGIC || trailer.toString('latin1', 4 + ID_BYTES) !== PART_MAGIC)
    throw new Damage(name, 'does not begin and end as a part does')
  const length = trailer.readUInt32LE(0)
  if (length > sizeBytes - MAGIC_BYTES - TRAILER_BYTES) throw new Damage(name, 'its table is longer than itself')
  const table = await read(sizeBytes - TRAILER_BYTES - length, length)
  if (!digest(table).equals(trailer.subarray(4, 4 + ID_BYTES))) throw new Damage(name, 'its table is damaged')
  const rows = decodeTable(table)
  const end = rows.reduce((sum, { storedLength }) => sum + storedLength, MAGIC_BYTES)
  if (end !== sizeBytes - TRAILER_BYTES - length) throw new Damage(name, 'is not as long as its table says')
  return rows
}

function decodeTable(table: Buffer): PlacedRow[] {
  const rows: PlacedRow[] = []
  let offset = MAGIC_BYTES
  for (let at = 0; at + ROW_BYTES <= table.length; at += ROW_BYTES) {
    const field = (index: number) => table.readUInt32LE(at + index * 4)
    const id = table.toString('hex', at + 16, at + ROW_BYTES)
    const storedLength = field(0)
    rows.push({ offset, storedLength, rawLength: field(1), codec: field(2), crc: field(3), id })
    offset += storedLength
  }
  return rows
}

/** Every byte of it is what was written, or it throws Damage; `BlobMissing` where it is not there. */
export async function checkPart(blobs: Pick<BlobStore, 'stat' | 'get'>, sealer: Sealer, name: string): Promise<void> {
  for (const row of await readPartTable(blobs, name)) {
    const stored = await blobs.get(name, { offset: row.offset, length: row.storedLength })
    decodeNamed(sealer, name, stored, row)
  }
}

/** The chunk, where it is what its name says. Throws Damage. */
export function decodeNamed(
  sealer: Sealer,
  blob: string,
  stored: Uint8Array,
  row: Omit<PlacedRow, 'storedLength'>,
): Buffer {
  let raw: Buffer
  try {
    raw = asBuffer(sealer.decode(stored, row))
  } catch {
    throw new Damage(blob, `the chunk at ${row.offset} cannot be decoded`)
  }
  if (sealer.idOf(raw).toString('hex') !== row.id) throw new Damage(blob, `the chunk at ${row.offset} is damaged`)
  return raw
}

// A pack: frames one after another, then a table of what they hold. A frame is what is compressed as one (a block, or
// many small ones); a block is what is named, looked up and shared.
import { randomBytes } from 'node:crypto'
import { LARGE_WRITE_BYTES, UNIT_BYTES } from '../../../blobs/direct-io.ts'
import type { BlobStore, BlobWriter } from '../../../blobs/store.ts'
import { asBuffer } from '../../../kit/bytes.ts'
import { Damage, digest, ID_BYTES, MAGIC_BYTES, PACK_MAGIC, packBlob } from '../format/format.ts'
import { createTableBuilder, TABLE_BYTES_AT_LEAST } from '../format/pack-table.ts'
import { CODEC_FILLER, CODEC_SPANS } from '../format/seal.ts'
import { encodeSpans, shiftSpans } from '../format/spans.ts'

const PACK_BYTES = 32 * 1024 * 1024
/** Of small files a pack would hold a million: what it holds is kept in memory until it is closed. */
const PACK_BLOCKS = 32_768
const TRAILER_BYTES = 4 + ID_BYTES + MAGIC_BYTES
const zeros = Buffer.alloc(UNIT_BYTES)

export interface WrittenPack {
  packId: string
  sizeBytes: number
  table: Buffer
}

export interface PackWriter {
  readonly packId: string
  readonly isFull: boolean
  /**
   * `table` lists what `bytes` hold, `spans` those of them that were taken when they were made. Returns where in the pack they
   * begin. The bytes must not change until `settled` has resolved.
   */
  append(bytes: Uint8Array, table: Uint8Array, spans?: Uint8Array): number
  /** Resolves when the store has taken all that was appended. */
  settled(): Promise<void>
  /** Once it returns, the pack is whole and survives a power failure. */
  finish(): Promise<WrittenPack>
  abort(): Promise<void>
}

/** `spanKey`: of the spans that will be given. */
export async function createPack(blobs: BlobStore, spanKey: Uint8Array | null = null): Promise<PackWriter> {
  const packId = randomBytes(16).toString('hex')
  const writer = await blobs.create(packBlob(packId))
  const tables = createTableBuilder()
  const spanRows: Uint8Array[] = []
  let offset = MAGIC_BYTES
  let tail = write(writer, Promise.resolve(), Buffer.from(PACK_MAGIC))

  function add(bytes: Uint8Array): void {
    tail = write(writer, tail, bytes)
    offset += bytes.length
  }

  /** So that what follows can be written around the page cache. Listed like anything else: no byte is without a check. */
  function align(): void {
    const length = -offset & (UNIT_BYTES - 1)
    if (length === 0) return
    addUnnamed(zeros.subarray(0, length), CODEC_FILLER)
  }

  function addUnnamed(bytes: Uint8Array, codec: number): void {
    const { length } = bytes
    tables.addFrame({ offset, storedLength: length, rawLength: length, codec, crc: 0 }, 0)
    add(bytes)
  }

  return {
    packId,
    get isFull() {
      return offset >= PACK_BYTES || tables.blockCount >= PACK_BLOCKS
    },
    append(bytes, table, spans) {
      if (bytes.length >= LARGE_WRITE_BYTES) align()
      const from = offset
      tables.addTable(table, from)
      if (spans && spans.length > 0) spanRows.push(shiftSpans(spans, from))
      add(bytes)
      return from
    },
    settled: () => tail,
    async finish() {
      if (spanKey && spanRows.length > 0) addUnnamed(encodeSpans(packId, spanKey, spanRows), CODEC_SPANS)
      const table = tables.take()
      await write(writer, tail, trailed(table))
      await writer.commit()
      return { packId, sizeBytes: offset + table.length + TRAILER_BYTES, table }
    },
    async abort() {
      await tail.catch(() => {})
      await writer.abort()
    },
  }
}

/** One write after another. A failure is met by whoever awaits the tail, which every owner of a pack does. */
function write(writer: BlobWriter, before: Promise<void>, bytes: Uint8Array): Promise<void> {
  const written = before.then(() => writer.write(bytes))
  written.catch(() => {})
  return written
}

function trailed(table: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(table.length)
  return Buffer.concat([table, length, digest(table), Buffer.from(PACK_MAGIC)])
}

/** One read holds the whole table of most packs. */
const TAIL_BYTES = 64 * 1024

export interface ReadPack extends WrittenPack {
  /** What was read with the table, and stands before it. */
  before: { offset: number; bytes: Buffer }
}

/** The table as it stands in the pack itself. Throws Damage where it is not what was written. */
export async function readPackTable(blobs: Pick<BlobStore, 'stat' | 'get'>, packId: string): Promise<ReadPack> {
  const name = packBlob(packId)
  const { sizeBytes } = await blobs.stat(name)
  if (sizeBytes < MAGIC_BYTES + TABLE_BYTES_AT_LEAST + TRAILER_BYTES) throw new Damage(name, 'too short for a pack')
  const head = asBuffer(await blobs.get(name, { offset: 0, length: MAGIC_BYTES }))
  const lastBytes = async (length: number) => asBuffer(await blobs.get(name, { offset: sizeBytes - length, length }))
  const tail = await lastBytes(Math.min(TAIL_BYTES, sizeBytes))
  if (tail.length < TRAILER_BYTES) throw new Damage(name, 'is shorter than it was')
  const trailer = tail.subarray(tail.length - TRAILER_BYTES)
  if (head.toString('latin1') !== PACK_MAGIC || trailer.toString('latin1', TRAILER_BYTES - MAGIC_BYTES) !== PACK_MAGIC)
    throw new Damage(name, 'does not begin and end as a pack does')
  const length = trailer.readUInt32LE(0)
  if (length > sizeBytes - MAGIC_BYTES - TRAILER_BYTES) throw new Damage(name, 'its table is longer than itself')
  const whole = length + TRAILER_BYTES
  const end = whole <= tail.length ? tail.subarray(tail.length - whole) : await lastBytes(whole)
  const table = end.subarray(0, length)
  if (!digest(table).equals(trailer.subarray(4, 4 + ID_BYTES))) throw new Damage(name, 'its table is damaged')
  const bytes = tail.subarray(0, Math.max(0, tail.length - whole))
  return { packId, sizeBytes, table, before: { offset: sizeBytes - tail.length, bytes } }
}

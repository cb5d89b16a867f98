// A pack: frames one after another, then a table of what they hold. A frame is what is compressed as one (a block, or
// many small ones); a block is what is named, looked up and shared.
import { randomBytes } from 'node:crypto'
import type { BlobStore, BlobWriter } from '../../blobs/store.ts'
import { Damage, digest, ID_BYTES, MAGIC_BYTES, PACK_MAGIC, packBlob } from './format.ts'

const PACK_BYTES = 32 * 1024 * 1024
/** Of small files a pack would hold a million: what it holds is kept in memory until it is closed. */
const PACK_BLOCKS = 32_768
const TRAILER_BYTES = 4 + ID_BYTES + MAGIC_BYTES
const FRAME_BYTES = 24
const BLOCK_RECORD_BYTES = ID_BYTES + 8
const COUNT_BYTES = 8

export interface Frame {
  offset: number
  storedLength: number
  rawLength: number
  codec: number
  crc: number
  blocks: FrameBlock[]
}

export type UnplacedFrame = Omit<Frame, 'offset'>

export interface FrameBlock {
  id: Uint8Array
  /** Where the block starts in the frame once decoded. */
  inner: number
  length: number
}

export function encodeTable(frames: Frame[]): Buffer {
  const blockCount = frames.reduce((sum, frame) => sum + frame.blocks.length, 0)
  const table = Buffer.alloc(COUNT_BYTES + frames.length * FRAME_BYTES + blockCount * BLOCK_RECORD_BYTES)
  table.writeUInt32LE(frames.length, 0)
  table.writeUInt32LE(blockCount, 4)
  let at = COUNT_BYTES
  for (const frame of frames) {
    const { offset, storedLength, rawLength, codec, crc, blocks } = frame
    for (const value of [offset, storedLength, rawLength, codec, crc, blocks.length])
      at = table.writeUInt32LE(value, at)
  }
  for (const { id, inner, length } of frames.flatMap((frame) => frame.blocks)) {
    table.set(id, at)
    at = table.writeUInt32LE(inner, at + ID_BYTES)
    at = table.writeUInt32LE(length, at)
  }
  return table
}

/** The table's own digest has been checked: what is wrong here was written wrong. Each frame comes before its blocks. */
export function visitTable(
  table: Buffer,
  on: {
    frame(frame: Omit<Frame, 'blocks'>): void
    block(idAt: number, inner: number, length: number): void
  },
): void {
  const view = new DataView(table.buffer, table.byteOffset, table.length)
  const frameCount = view.getUint32(0, true)
  let blockAt = COUNT_BYTES + frameCount * FRAME_BYTES
  for (let index = 0; index < frameCount; index++) {
    const at = COUNT_BYTES + index * FRAME_BYTES
    const field = (position: number) => view.getUint32(at + position * 4, true)
    on.frame({ offset: field(0), storedLength: field(1), rawLength: field(2), codec: field(3), crc: field(4) })
    for (let left = field(5); left > 0; left--) {
      on.block(blockAt, view.getUint32(blockAt + ID_BYTES, true), view.getUint32(blockAt + ID_BYTES + 4, true))
      blockAt += BLOCK_RECORD_BYTES
    }
  }
}

export function decodeTable(table: Buffer): Frame[] {
  const frames: Frame[] = []
  visitTable(table, {
    frame: (frame) => void frames.push({ ...frame, blocks: [] }),
    block: (idAt, inner, length) => {
      frames.at(-1)?.blocks.push({ id: table.subarray(idAt, idAt + ID_BYTES), inner, length })
    },
  })
  return frames
}

export interface WrittenPack {
  packId: string
  sizeBytes: number
  table: Buffer
}

export interface PackWriter {
  readonly packId: string
  readonly isFull: boolean
  /** Frames that follow each other in `bytes`. Returns them as placed. The bytes must not change until `settled` has resolved. */
  append(bytes: Uint8Array, frames: UnplacedFrame[]): Frame[]
  /** Resolves when the store has taken all that was appended. */
  settled(): Promise<void>
  /** Once it returns, the pack is whole and survives a power failure. */
  finish(): Promise<WrittenPack>
  abort(): Promise<void>
}

export async function createPack(blobs: BlobStore): Promise<PackWriter> {
  const packId = randomBytes(16).toString('hex')
  const writer = await blobs.create(packBlob(packId))
  const frames: Frame[] = []
  let offset = MAGIC_BYTES
  let blockCount = 0
  let tail = write(writer, Promise.resolve(), Buffer.from(PACK_MAGIC))
  return {
    packId,
    get isFull() {
      return offset >= PACK_BYTES || blockCount >= PACK_BLOCKS
    },
    append(bytes, added) {
      const placed = added.map((frame) => {
        const at = offset
        offset += frame.storedLength
        blockCount += frame.blocks.length
        return { ...frame, offset: at }
      })
      frames.push(...placed)
      tail = write(writer, tail, bytes)
      return placed
    },
    settled: () => tail,
    async finish() {
      const table = encodeTable(frames)
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

/** The table as it stands in the pack itself. Throws Damage where it is not what was written. */
export async function readPackTable(blobs: BlobStore, packId: string): Promise<WrittenPack> {
  const name = packBlob(packId)
  const { sizeBytes } = await blobs.stat(name)
  if (sizeBytes < MAGIC_BYTES + COUNT_BYTES + TRAILER_BYTES) throw new Damage(name, 'too short for a pack')
  const head = Buffer.from(await blobs.get(name, { offset: 0, length: MAGIC_BYTES }))
  const trailer = Buffer.from(await blobs.get(name, { offset: sizeBytes - TRAILER_BYTES, length: TRAILER_BYTES }))
  if (head.toString('latin1') !== PACK_MAGIC || trailer.toString('latin1', TRAILER_BYTES - MAGIC_BYTES) !== PACK_MAGIC)
    throw new Damage(name, 'does not begin and end as a pack does')
  const length = trailer.readUInt32LE(0)
  if (length > sizeBytes - MAGIC_BYTES - TRAILER_BYTES) throw new Damage(name, 'its table is longer than itself')
  const table = Buffer.from(await blobs.get(name, { offset: sizeBytes - TRAILER_BYTES - length, length }))
  if (!digest(table).equals(trailer.subarray(4, 4 + ID_BYTES))) throw new Damage(name, 'its table is damaged')
  return { packId, sizeBytes, table }
}

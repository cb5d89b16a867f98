// What a stretch of a pack holds, as it is written down in the pack and in an index: frames, and the blocks in them. A
// table travels as bytes from the worker thread that made the frames to the disk: an object for every block would cost
// more than hashing a small one.
import { ID_BYTES } from './format.ts'

const COUNT_BYTES = 8
const FRAME_ROW_BYTES = 24
const BLOCK_ROW_BYTES = ID_BYTES + 8
/** The least that a table of frames has. */
export const TABLE_BYTES_AT_LEAST = COUNT_BYTES

export interface FrameRow {
  offset: number
  storedLength: number
  rawLength: number
  codec: number
  /** Over the stored bytes, where they were compressed and are in the clear; otherwise 0. */
  crc: number
}

export interface Frame extends FrameRow {
  blocks: FrameBlock[]
}

export interface FrameBlock {
  id: Uint8Array
  /** Where the block starts in the frame once decoded. */
  inner: number
  length: number
}

export interface TableBuilder {
  readonly frameCount: number
  readonly blockCount: number
  /** The blocks that are added next are its own, as many as it says. */
  addFrame(row: FrameRow, blockCount: number): void
  addBlock(id: Uint8Array, inner: number, length: number): void
  /** Everything that another table lists, its frames moved by `shift` bytes. */
  addTable(table: Uint8Array, shift: number): void
  /** In memory of its own. */
  take(): Buffer
}

export function createTableBuilder(): TableBuilder {
  const frames = createBytes()
  const blocks = createBytes()
  let frameCount = 0
  let blockCount = 0
  return {
    get frameCount() {
      return frameCount
    },
    get blockCount() {
      return blockCount
    },
    addFrame({ offset, storedLength, rawLength, codec, crc }, count) {
      const { bytes, at } = frames.extend(FRAME_ROW_BYTES)
      bytes.writeUInt32LE(offset, at)
      bytes.writeUInt32LE(storedLength, at + 4)
      bytes.writeUInt32LE(rawLength, at + 8)
      bytes.writeUInt32LE(codec, at + 12)
      bytes.writeUInt32LE(crc, at + 16)
      bytes.writeUInt32LE(count, at + 20)
      frameCount++
    },
    addBlock(id, inner, length) {
      const { bytes, at } = blocks.extend(BLOCK_ROW_BYTES)
      bytes.set(id, at)
      bytes.writeUInt32LE(inner, at + ID_BYTES)
      bytes.writeUInt32LE(length, at + ID_BYTES + 4)
      blockCount++
    },
    addTable(table, shift) {
      const view = viewOf(table)
      const count = view.getUint32(0, true)
      const blocksAt = COUNT_BYTES + count * FRAME_ROW_BYTES
      const { bytes, at } = frames.extend(count * FRAME_ROW_BYTES)
      bytes.set(table.subarray(COUNT_BYTES, blocksAt), at)
      for (let row = at; row < at + count * FRAME_ROW_BYTES; row += FRAME_ROW_BYTES)
        bytes.writeUInt32LE(bytes.readUInt32LE(row) + shift, row)
      const target = blocks.extend(table.length - blocksAt)
      target.bytes.set(table.subarray(blocksAt), target.at)
      frameCount += count
      blockCount += view.getUint32(4, true)
    },
    take() {
      const table = Buffer.allocUnsafeSlow(COUNT_BYTES + frames.length + blocks.length)
      table.writeUInt32LE(frameCount, 0)
      table.writeUInt32LE(blockCount, 4)
      frames.copyTo(table, COUNT_BYTES)
      blocks.copyTo(table, COUNT_BYTES + frames.length)
      return table
    },
  }
}

function createBytes() {
  let bytes = Buffer.allocUnsafeSlow(4096)
  let length = 0
  return {
    get length() {
      return length
    },
    extend(by: number): { bytes: Buffer; at: number } {
      const at = length
      length += by
      if (length > bytes.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(length, bytes.length * 2))
        bytes.copy(larger, 0, 0, at)
        bytes = larger
      }
      return { bytes, at }
    },
    copyTo: (target: Buffer, at: number) => bytes.copy(target, at, 0, length),
  }
}

const viewOf = (table: Uint8Array) => new DataView(table.buffer, table.byteOffset, table.length)

/** The table's own digest has been checked: what is wrong here was written wrong. Each frame comes before its blocks. */
export function visitTable(
  table: Uint8Array,
  on: {
    frame(row: FrameRow, blockCount: number): void
    block(idAt: number, inner: number, length: number): void
  },
): void {
  const view = viewOf(table)
  const frameCount = view.getUint32(0, true)
  let blockAt = COUNT_BYTES + frameCount * FRAME_ROW_BYTES
  for (let index = 0; index < frameCount; index++) {
    const at = COUNT_BYTES + index * FRAME_ROW_BYTES
    const field = (position: number) => view.getUint32(at + position * 4, true)
    const blockCount = field(5)
    on.frame(
      { offset: field(0), storedLength: field(1), rawLength: field(2), codec: field(3), crc: field(4) },
      blockCount,
    )
    for (let left = blockCount; left > 0; left--) {
      on.block(blockAt, view.getUint32(blockAt + ID_BYTES, true), view.getUint32(blockAt + ID_BYTES + 4, true))
      blockAt += BLOCK_ROW_BYTES
    }
  }
}

export function decodeTable(table: Uint8Array): Frame[] {
  const frames: Frame[] = []
  visitTable(table, {
    frame: (frame) => void frames.push({ ...frame, blocks: [] }),
    block: (idAt, inner, length) => {
      frames.at(-1)?.blocks.push({ id: table.subarray(idAt, idAt + ID_BYTES), inner, length })
    },
  })
  return frames
}

/** Of one frame that stands at the beginning of what it describes. */
export function tableOf(frame: Frame): Buffer {
  const builder = createTableBuilder()
  builder.addFrame({ ...frame, offset: 0 }, frame.blocks.length)
  for (const { id, inner, length } of frame.blocks) builder.addBlock(id, inner, length)
  return builder.take()
}

// What a stretch of a pack holds, as it is written down in the pack and in an index: frames, and the blocks in them. A
// table travels as bytes from the worker thread that made the frames to the disk: an object for every block would cost
// more than hashing a small one (`npm run bench -- backups`, `first`).
import { ID_BYTES } from './format.ts'
import { CODEC_SPANS } from './seal.ts'

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
  /** Its id stands at `idAt`. */
  addBlock(ids: Uint8Array, idAt: number, inner: number, length: number): void
  /** Everything that another table lists, its frames moved by `shift` bytes. */
  addTable(table: Uint8Array, shift: number): void
  /** In memory of its own. */
  take(): Buffer
}

export function createTableBuilder(): TableBuilder {
  const frames = new Bytes()
  const blocks = new Bytes()
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
      const at = frames.extend(FRAME_ROW_BYTES)
      const { view } = frames
      view.setUint32(at, offset, true)
      view.setUint32(at + 4, storedLength, true)
      view.setUint32(at + 8, rawLength, true)
      view.setUint32(at + 12, codec, true)
      view.setUint32(at + 16, crc, true)
      view.setUint32(at + 20, count, true)
      frameCount++
    },
    addBlock(ids, idAt, inner, length) {
      const at = blocks.extend(BLOCK_ROW_BYTES)
      const { bytes, view } = blocks
      for (let byte = 0; byte < ID_BYTES; byte++) bytes[at + byte] = ids[idAt + byte] ?? 0
      view.setUint32(at + ID_BYTES, inner, true)
      view.setUint32(at + ID_BYTES + 4, length, true)
      blockCount++
    },
    addTable(table, shift) {
      const view = viewOf(table)
      const count = view.getUint32(0, true)
      const blocksAt = COUNT_BYTES + count * FRAME_ROW_BYTES
      const at = frames.extend(count * FRAME_ROW_BYTES)
      frames.bytes.set(table.subarray(COUNT_BYTES, blocksAt), at)
      for (let row = at; row < at + count * FRAME_ROW_BYTES; row += FRAME_ROW_BYTES)
        frames.view.setUint32(row, frames.view.getUint32(row, true) + shift, true)
      const blockAt = blocks.extend(table.length - blocksAt)
      blocks.bytes.set(table.subarray(blocksAt), blockAt)
      frameCount += count
      blockCount += view.getUint32(4, true)
    },
    take() {
      const table = Buffer.allocUnsafeSlow(COUNT_BYTES + frames.length + blocks.length)
      table.writeUInt32LE(frameCount, 0)
      table.writeUInt32LE(blockCount, 4)
      table.set(frames.bytes.subarray(0, frames.length), COUNT_BYTES)
      table.set(blocks.bytes.subarray(0, blocks.length), COUNT_BYTES + frames.length)
      return table
    },
  }
}

/** A class, since many are made: the getters of an object literal are defined anew for each. */
class Bytes {
  bytes = new Uint8Array(4096)
  view = viewOf(this.bytes)
  length = 0

  /** Returns where what is added begins. */
  extend(by: number): number {
    const at = this.length
    this.length += by
    if (this.length > this.bytes.length) {
      const larger = new Uint8Array(Math.max(this.length, this.bytes.length * 2))
      larger.set(this.bytes)
      this.bytes = larger
      this.view = viewOf(larger)
    }
    return at
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

/** Where the pack has the list of its spans: in its last frame, if at all. */
export function spansIn(table: Uint8Array): { offset: number; length: number } | undefined {
  const view = viewOf(table)
  const last = COUNT_BYTES + (view.getUint32(0, true) - 1) * FRAME_ROW_BYTES
  if (last < COUNT_BYTES || view.getUint32(last + 12, true) !== CODEC_SPANS) return undefined
  return { offset: view.getUint32(last, true), length: view.getUint32(last + 4, true) }
}

/** Of one frame that stands at the beginning of what it describes. */
export function tableOf(frame: Frame): Buffer {
  const builder = createTableBuilder()
  builder.addFrame({ ...frame, offset: 0 }, frame.blocks.length)
  for (const { id, inner, length } of frame.blocks) builder.addBlock(id, 0, inner, length)
  return builder.take()
}

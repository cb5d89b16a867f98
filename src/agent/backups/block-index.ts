// Where every block is, in memory that stays small: rows of numbers, not objects. About 50 bytes a block.
import { ID_BYTES } from './format.ts'
import type { Frame, FrameBlock } from './packs.ts'

const CHUNK = 1 << 14
const EMPTY = 0

export interface FramePlace {
  frame: number
  packId: string
  offset: number
  storedLength: number
  rawLength: number
  codec: number
  crc: number
}

export interface BlockPlace extends FramePlace {
  inner: number
  length: number
}

export interface BlockIndex {
  readonly blockCount: number
  readonly packIds: Iterable<string>
  /** The block's number, or -1. A damaged block counts as absent: the next backup that has its content stores it anew. */
  find(id: Uint8Array, at?: number): number
  /** As `find`, damaged ones too. */
  findAny(id: Uint8Array, at?: number): number
  place(block: number): BlockPlace
  idOf(block: number): Uint8Array
  framePlace(frame: number): FramePlace
  /** The first place of a block is kept, unless that one is damaged. Returns how many blocks were new or healed. */
  addPack(packId: string, frames: Frame[]): number
  addFrame(packId: string, frame: Frame): number
  removePack(packId: string): void
  markDamaged(block: number): void
  isDamaged(block: number): boolean
  frameOf(block: number): number
  /** For the workers: the first 64 bits of every block's id, in shared memory. A new one is made as it grows. */
  filter(): SharedArrayBuffer
  /** Tells the workers of a block that a backup under way has stored, so that they need not compress it twice. */
  hint(id: Uint8Array): void
}

export function createBlockIndex(): BlockIndex {
  const packNumbers = new Map<string, number>()
  const packs: (string | undefined)[] = []
  const ids = rows(Uint8Array, ID_BYTES)
  const blocks = rows(Uint32Array, 3)
  const frames = rows(Uint32Array, 6)
  const damaged = new Set<number>()
  let blockCount = 0
  let frameCount = 0
  let slots = new Uint32Array(1 << 12)
  let filter = createFilter(1 << 12)
  let hints = 0

  function hashOf(id: Uint8Array, at: number): number {
    return ((id[at] ?? 0) | ((id[at + 1] ?? 0) << 8) | ((id[at + 2] ?? 0) << 16) | ((id[at + 3] ?? 0) << 24)) >>> 0
  }

  function isSame(block: number, id: Uint8Array, at: number): boolean {
    const chunk = ids.chunkOf(block)
    const base = ids.baseOf(block)
    for (let i = 0; i < ID_BYTES; i++) if (chunk[base + i] !== id[at + i]) return false
    return true
  }

  function slotOf(id: Uint8Array, at: number): number {
    const mask = slots.length - 1
    let slot = hashOf(id, at) & mask
    for (let held = slots[slot] ?? EMPTY; held !== EMPTY; held = slots[slot] ?? EMPTY) {
      if (isSame(held - 1, id, at)) return slot
      slot = (slot + 1) & mask
    }
    return slot
  }

  function findAny(id: Uint8Array, at = 0): number {
    const block = (slots[slotOf(id, at)] ?? EMPTY) - 1
    return block >= 0 && isGone(block) ? -1 : block
  }

  /** The pack was taken away. The row stays until the index is loaded anew, and is used again if the block comes back. */
  function isGone(block: number): boolean {
    return packs[frames.get(blocks.get(block, 0), 0)] === undefined
  }

  function grow(): void {
    slots = new Uint32Array(slots.length * 2)
    const mask = slots.length - 1
    for (let block = 0; block < blockCount; block++) {
      let slot = hashOf(ids.chunkOf(block), ids.baseOf(block)) & mask
      while (slots[slot] !== EMPTY) slot = (slot + 1) & mask
      slots[slot] = block + 1
    }
    hints = blockCount
    filter = createFilter(slots.length)
    for (let block = 0; block < blockCount; block++) addToFilter(filter, ids.chunkOf(block), ids.baseOf(block))
  }

  function addBlock(frame: number, { id, inner, length }: FrameBlock): boolean {
    const slot = slotOf(id, 0)
    let block = (slots[slot] ?? EMPTY) - 1
    if (block >= 0 && !isGone(block) && !damaged.has(block)) return false
    if (block < 0) {
      block = blockCount++
      ids.chunkOf(block).set(id, ids.baseOf(block))
      slots[slot] = block + 1
      hints++
      addToFilter(filter, id, 0)
    }
    damaged.delete(block)
    blocks.set(block, [frame, inner, length])
    if (blockCount * 3 > slots.length * 2) grow()
    return true
  }

  function numberOfPack(packId: string): number {
    const known = packNumbers.get(packId)
    if (known !== undefined) return known
    packNumbers.set(packId, packs.length)
    return packs.push(packId) - 1
  }

  function addFrame(packId: string, frame: Frame): number {
    const { offset, storedLength, rawLength, codec, crc } = frame
    const number = frameCount++
    frames.set(number, [numberOfPack(packId), offset, storedLength, rawLength, codec, crc])
    let added = 0
    for (const block of frame.blocks) if (addBlock(number, block)) added++
    return added
  }

  function framePlace(frame: number): FramePlace {
    const packId = packs[frames.get(frame, 0)] ?? ''
    const [offset, storedLength, rawLength] = [frames.get(frame, 1), frames.get(frame, 2), frames.get(frame, 3)]
    return { frame, packId, offset, storedLength, rawLength, codec: frames.get(frame, 4), crc: frames.get(frame, 5) }
  }

  return {
    get blockCount() {
      return blockCount
    },
    get packIds() {
      return packNumbers.keys()
    },
    find(id, at) {
      const block = findAny(id, at)
      return block >= 0 && damaged.has(block) ? -1 : block
    },
    findAny,
    place: (block) => ({
      ...framePlace(blocks.get(block, 0)),
      inner: blocks.get(block, 1),
      length: blocks.get(block, 2),
    }),
    idOf: (block) => ids.chunkOf(block).slice(ids.baseOf(block), ids.baseOf(block) + ID_BYTES),
    frameOf: (block) => blocks.get(block, 0),
    framePlace,
    addFrame,
    addPack(packId, added) {
      return added.reduce((sum, frame) => sum + addFrame(packId, frame), 0)
    },
    removePack(packId) {
      const number = packNumbers.get(packId)
      if (number === undefined) return
      packNumbers.delete(packId)
      packs[number] = undefined
    },
    markDamaged: (block) => void damaged.add(block),
    isDamaged: (block) => damaged.has(block),
    filter: () => filter.buffer,
    hint(id) {
      if (++hints * 3 > filter.length) return
      addToFilter(filter, id, 0)
    },
  }
}

type NumberArray = Uint8Array | Uint32Array

/** A table of fixed-width rows that grows by chunks, so that growing never copies. */
function rows<A extends NumberArray>(make: new (length: number) => A, width: number) {
  const chunks: A[] = []
  const chunkOf = (row: number): A => {
    const index = Math.floor(row / CHUNK)
    const chunk = chunks[index]
    if (chunk) return chunk
    const made = new make(CHUNK * width)
    chunks[index] = made
    return made
  }
  const baseOf = (row: number) => (row % CHUNK) * width
  return {
    chunkOf,
    baseOf,
    get: (row: number, column: number): number => chunkOf(row)[baseOf(row) + column] ?? 0,
    set: (row: number, values: number[]) => chunkOf(row).set(values, baseOf(row)),
  }
}

const FILTER_BYTES = 8

function createFilter(slotCount: number): Uint32Array<SharedArrayBuffer> {
  return new Uint32Array(new SharedArrayBuffer(slotCount * FILTER_BYTES))
}

function addToFilter(view: Uint32Array, id: Uint8Array, at: number): void {
  const [low, high] = halves(id, at)
  const mask = view.length / 2 - 1
  let slot = low & mask
  while (view[slot * 2] !== 0 || view[slot * 2 + 1] !== 0) {
    if (view[slot * 2] === low && view[slot * 2 + 1] === high) return
    slot = (slot + 1) & mask
  }
  view[slot * 2 + 1] = high
  view[slot * 2] = low
}

/** A hint only: read by other threads while it is written. Whoever acts on it has the index confirm it. */
export function filterHas(view: Uint32Array, id: Uint8Array): boolean {
  const [low, high] = halves(id, 0)
  const mask = view.length / 2 - 1
  let slot = low & mask
  while (view[slot * 2] !== 0 || view[slot * 2 + 1] !== 0) {
    if (view[slot * 2] === low && view[slot * 2 + 1] === high) return true
    slot = (slot + 1) & mask
  }
  return false
}

function halves(id: Uint8Array, at: number): [number, number] {
  const half = (from: number) =>
    ((id[from] ?? 0) | ((id[from + 1] ?? 0) << 8) | ((id[from + 2] ?? 0) << 16) | ((id[from + 3] ?? 0) << 24)) >>> 0
  return [half(at), half(at + 4)]
}

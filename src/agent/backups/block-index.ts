// Where every block is, in memory that stays small: rows of numbers, not objects. About 50 bytes a block.
import { addToFilter, createFilter, wordAt } from './block-filter.ts'
import { ID_BYTES } from './format.ts'
import { type FrameRow, visitTable } from './tables.ts'

const CHUNK_BITS = 14
const CHUNK = 1 << CHUNK_BITS
const EMPTY = 0
/** They take less than a millisecond. */
const BLOCKS_A_TURN = 512

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
  /** The block's number, or -1. A damaged block counts as absent: the next backup that has its content stores it anew. */
  find(id: Uint8Array, at?: number): number
  /** As `find`, damaged ones too. */
  findAny(id: Uint8Array, at?: number): number
  place(block: number): BlockPlace
  framePlace(frame: number): FramePlace
  /** What a table lists, its frames moved by `shift`. The first place of a block is kept, unless that one is damaged. */
  addTable(packId: string, table: Uint8Array, shift?: number): void
  /** Everything that another index has, with what is known of its damage. Yields now and then: others have their turn. */
  addAll(other: BlockIndex): Generator<void, void, undefined>
  /** Takes in, in one step, everything of another which this one is to replace. */
  succeed(other: BlockIndex): void
  /** Every block, after the frame that it is in; yields now and then. An id is valid for the call. */
  visit(on: {
    frame(place: FramePlace): void
    block(ids: Uint8Array, at: number, inner: number, length: number): void
  }): Generator<void, void, undefined>
  markDamaged(block: number): void
  /** How often a block was found to be damaged. While it stays the same, what was held is held. */
  readonly losses: number
  isDamaged(block: number): boolean
  frameOf(block: number): number
  /**
   * For the workers: the first 64 bits of every block's id, in shared memory. Made when it is first asked for, and anew
   * as the index grows.
   */
  filter(): SharedArrayBuffer
  /** Tells the workers of a block that a backup under way has stored, so that they need not compress it twice. */
  hint(id: Uint8Array, at?: number): void
}

export function createBlockIndex(): BlockIndex {
  const packNumbers = new Map<string, number>()
  const packs: string[] = []
  const ids = rows(Uint8Array, ID_BYTES)
  const blocks = rows(Uint32Array, 3)
  const frames = rows(Uint32Array, 6)
  const damaged = new Set<number>()
  let blockCount = 0
  let frameCount = 0
  let losses = 0
  let slots = new Uint32Array(1 << 12)
  let filter: Uint32Array<SharedArrayBuffer> | undefined
  /** Of the filter's places, those that are taken. */
  let filtered = 0

  function isSame(block: number, id: Uint8Array, at: number): boolean {
    const chunk = ids.chunkOf(block)
    const base = ids.baseOf(block)
    for (let i = 0; i < ID_BYTES; i++) if (chunk[base + i] !== id[at + i]) return false
    return true
  }

  function slotOf(id: Uint8Array, at: number): number {
    const mask = slots.length - 1
    let slot = wordAt(id, at) & mask
    for (let held = slots[slot] ?? EMPTY; held !== EMPTY; held = slots[slot] ?? EMPTY) {
      if (isSame(held - 1, id, at)) return slot
      slot = (slot + 1) & mask
    }
    return slot
  }

  const findAny = (id: Uint8Array, at = 0) => (slots[slotOf(id, at)] ?? EMPTY) - 1

  function grow(): void {
    slots = new Uint32Array(slots.length * 2)
    const mask = slots.length - 1
    for (let block = 0; block < blockCount; block++) {
      let slot = wordAt(ids.chunkOf(block), ids.baseOf(block)) & mask
      while (slots[slot] !== EMPTY) slot = (slot + 1) & mask
      slots[slot] = block + 1
    }
    if (filter) filter = makeFilter()
  }

  function makeFilter(): Uint32Array<SharedArrayBuffer> {
    const made = createFilter(slots.length)
    for (let block = 0; block < blockCount; block++) addToFilter(made, ids.chunkOf(block), ids.baseOf(block))
    filtered = blockCount
    return made
  }

  /** A third stays free: a search ends at a free place. */
  const isFilterFull = () => filter !== undefined && (filtered + 1) * 3 > filter.length

  /** Hints use up places that blocks need; they are forgotten then. */
  function tellFilter(id: Uint8Array, at: number): void {
    if (!filter) return
    if (isFilterFull()) {
      filter = makeFilter()
      return
    }
    filtered++
    addToFilter(filter, id, at)
  }

  function addBlock(frame: number, id: Uint8Array, at: number, inner: number, length: number): void {
    const slot = slotOf(id, at)
    let block = (slots[slot] ?? EMPTY) - 1
    if (block >= 0 && !damaged.has(block)) return
    if (block < 0) {
      block = blockCount++
      const chunk = ids.chunkOf(block)
      const base = ids.baseOf(block)
      for (let i = 0; i < ID_BYTES; i++) chunk[base + i] = id[at + i] ?? 0
      slots[slot] = block + 1
      tellFilter(id, at)
    }
    damaged.delete(block)
    blocks.set(block, frame, inner, length)
    if (blockCount * 3 > slots.length * 2) grow()
  }

  function numberOfPack(packId: string): number {
    const known = packNumbers.get(packId)
    if (known !== undefined) return known
    packNumbers.set(packId, packs.length)
    return packs.push(packId) - 1
  }

  function addFrameRow(packId: string, { offset, storedLength, rawLength, codec, crc }: FrameRow, shift = 0): number {
    frames.set(frameCount, numberOfPack(packId), offset + shift, storedLength, rawLength, codec, crc)
    return frameCount++
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
    frameOf: (block) => blocks.get(block, 0),
    framePlace,
    addTable(packId, table, shift = 0) {
      let number = -1
      visitTable(table, {
        frame: (row) => {
          number = addFrameRow(packId, row, shift)
        },
        block: (idAt, inner, length) => addBlock(number, table, idAt, inner, length),
      })
    },
    *addAll(other) {
      let number = -1
      let block = 0
      yield* other.visit({
        frame: (place) => {
          number = addFrameRow(place.packId, place)
        },
        block: (from, at, inner, length) => {
          const before = blockCount
          addBlock(number, from, at, inner, length)
          if (blockCount > before && other.isDamaged(block)) damaged.add(before)
          block++
        },
      })
    },
    succeed(other) {
      for (const _ of this.addAll(other));
      losses = other.losses
    },
    *visit(on) {
      let frame = -1
      for (let block = 0; block < blockCount; block++) {
        if (blocks.get(block, 0) !== frame) {
          frame = blocks.get(block, 0)
          on.frame(framePlace(frame))
        }
        on.block(ids.chunkOf(block), ids.baseOf(block), blocks.get(block, 1), blocks.get(block, 2))
        if (block % BLOCKS_A_TURN === 0) yield
      }
    },
    markDamaged(block) {
      damaged.add(block)
      losses++
    },
    get losses() {
      return losses
    },
    isDamaged: (block) => damaged.has(block),
    filter() {
      filter ??= makeFilter()
      return filter.buffer
    },
    hint(id, at = 0) {
      if (!isFilterFull()) tellFilter(id, at)
    },
  }
}

type NumberArray = Uint8Array | Uint32Array

/** A table of fixed-width rows that grows by chunks, so that growing never copies. */
function rows<A extends NumberArray>(make: new (length: number) => A, width: number) {
  const chunks: A[] = []
  const chunkOf = (row: number): A => {
    const index = row >> CHUNK_BITS
    const chunk = chunks[index]
    if (chunk) return chunk
    const made = new make(CHUNK * width)
    chunks[index] = made
    return made
  }
  const baseOf = (row: number) => (row & (CHUNK - 1)) * width
  return {
    chunkOf,
    baseOf,
    get: (row: number, column: number): number => chunkOf(row)[baseOf(row) + column] ?? 0,
    set(row: number, ...values: number[]): void {
      const chunk = chunkOf(row)
      const base = baseOf(row)
      for (let column = 0; column < values.length; column++) chunk[base + column] = values[column] ?? 0
    },
  }
}

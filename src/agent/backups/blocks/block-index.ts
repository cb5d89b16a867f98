// Where every block is, in memory that stays small: rows of numbers, not objects. About 50 bytes a block
// (`npm run bench -- backups-scale`, peak memory).

import { ID_BYTES } from '../format/format.ts'
import { type FrameRow, visitTable } from '../format/pack-table.ts'
import { addToFilter, createFilter, wordAt } from './block-filter.ts'
import { noteOfPack, type PackNote } from './pack-notes.ts'
import { Rows } from './rows.ts'

const EMPTY = 0
/** They take less than a millisecond. */
const BLOCKS_A_TURN = 512

const BLOCK = { frame: 0, inner: 1, length: 2, fields: 3 } as const
const FRAME = { pack: 0, offset: 1, storedLength: 2, rawLength: 3, codec: 4, crc: 5, fields: 6 } as const

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
  /**
   * What a table lists of a pack, its frames moved by `shift`. The first place of a block is kept, unless that one is
   * damaged.
   */
  addTable(packId: string, table: Uint8Array, shift?: number): void
  /** The pack is complete, and this is its table. */
  notePack(packId: string, table: Uint8Array): void
  /** Both. */
  addPack(packId: string, table: Uint8Array): void
  readonly packNotes: ReadonlyMap<string, PackNote>
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
  /** It was healed where it is. */
  markSound(block: number): void
  /** How often a block was found to be damaged. While it stays the same, what was held is held. */
  readonly losses: number
  isDamaged(block: number): boolean
  frameOf(block: number): number
  /** Where it is in its frame, decoded. */
  innerOf(block: number): number
  lengthOf(block: number): number
  /**
   * For the workers: the first 64 bits of every block's id, in shared memory. Made when it is first asked for, and anew
   * as the index grows.
   */
  filter(): SharedArrayBuffer
  /** Tells the workers of a block that a backup under way has stored, so that they need not compress it twice. */
  hint(id: Uint8Array, at?: number): void
}

export const createBlockIndex = (): BlockIndex => new Index()

/**
 * A class, since every backup makes one and each block is looked up in it: made of closures, it took three times as much
 * compiling while a first backup ran (`npm run bench -- backups`, `first`).
 */
class Index implements BlockIndex {
  private readonly packNumbers = new Map<string, number>()
  private readonly packs: string[] = []
  private readonly ids = new Rows(Uint8Array, ID_BYTES)
  private readonly blocks = new Rows(Uint32Array, BLOCK.fields)
  private readonly frames = new Rows(Uint32Array, FRAME.fields)
  private readonly damaged = new Set<number>()
  readonly packNotes = new Map<string, PackNote>()
  blockCount = 0
  private frameCount = 0
  losses = 0
  private slots = new Uint32Array(1 << 12)
  private shared: Uint32Array<SharedArrayBuffer> | undefined
  /** Of the filter's places, those that are taken. */
  private filtered = 0

  find(id: Uint8Array, at = 0): number {
    const block = this.findAny(id, at)
    return block >= 0 && this.damaged.has(block) ? -1 : block
  }

  findAny(id: Uint8Array, at = 0): number {
    return (this.slots[this.slotOf(id, at)] ?? EMPTY) - 1
  }

  private slotOf(id: Uint8Array, at: number): number {
    const { slots } = this
    const mask = slots.length - 1
    let slot = wordAt(id, at) & mask
    for (let held = slots[slot] ?? EMPTY; held !== EMPTY; held = slots[slot] ?? EMPTY) {
      if (this.isSame(held - 1, id, at)) return slot
      slot = (slot + 1) & mask
    }
    return slot
  }

  private isSame(block: number, id: Uint8Array, at: number): boolean {
    const chunk = this.ids.chunkOf(block)
    const base = this.ids.baseOf(block)
    for (let i = 0; i < ID_BYTES; i++) if (chunk[base + i] !== id[at + i]) return false
    return true
  }

  private grow(): void {
    const { ids } = this
    const slots = new Uint32Array(this.slots.length * 2)
    const mask = slots.length - 1
    for (let block = 0; block < this.blockCount; block++) {
      let slot = wordAt(ids.chunkOf(block), ids.baseOf(block)) & mask
      while (slots[slot] !== EMPTY) slot = (slot + 1) & mask
      slots[slot] = block + 1
    }
    this.slots = slots
    if (this.shared) this.shared = this.makeFilter()
  }

  private makeFilter(): Uint32Array<SharedArrayBuffer> {
    const { ids } = this
    const made = createFilter(this.slots.length)
    for (let block = 0; block < this.blockCount; block++) addToFilter(made, ids.chunkOf(block), ids.baseOf(block))
    this.filtered = this.blockCount
    return made
  }

  /** A third stays free: a search ends at a free place. */
  private isFilterFull(): boolean {
    return this.shared !== undefined && (this.filtered + 1) * 3 > this.shared.length
  }

  /** Hints use up places that blocks need; they are forgotten then. */
  private tellFilter(id: Uint8Array, at: number): void {
    if (!this.shared) return
    if (this.isFilterFull()) {
      this.shared = this.makeFilter()
      return
    }
    this.filtered++
    addToFilter(this.shared, id, at)
  }

  private addBlock(frame: number, id: Uint8Array, at: number, inner: number, length: number): void {
    const slot = this.slotOf(id, at)
    let block = (this.slots[slot] ?? EMPTY) - 1
    if (block >= 0 && !this.damaged.has(block)) return
    if (block < 0) {
      block = this.blockCount++
      const chunk = this.ids.chunkOf(block)
      const base = this.ids.baseOf(block)
      for (let i = 0; i < ID_BYTES; i++) chunk[base + i] = id[at + i] ?? 0
      this.slots[slot] = block + 1
      this.tellFilter(id, at)
    }
    this.damaged.delete(block)
    const chunk = this.blocks.chunkOf(block)
    const base = this.blocks.baseOf(block)
    chunk[base + BLOCK.frame] = frame
    chunk[base + BLOCK.inner] = inner
    chunk[base + BLOCK.length] = length
    if (this.blockCount * 3 > this.slots.length * 2) this.grow()
  }

  private numberOfPack(packId: string): number {
    const known = this.packNumbers.get(packId)
    if (known !== undefined) return known
    this.packNumbers.set(packId, this.packs.length)
    return this.packs.push(packId) - 1
  }

  private addFrame(packId: string, { offset, storedLength, rawLength, codec, crc }: FrameRow, shift = 0): number {
    const frame = this.frameCount++
    const chunk = this.frames.chunkOf(frame)
    const base = this.frames.baseOf(frame)
    chunk[base + FRAME.pack] = this.numberOfPack(packId)
    chunk[base + FRAME.offset] = offset + shift
    chunk[base + FRAME.storedLength] = storedLength
    chunk[base + FRAME.rawLength] = rawLength
    chunk[base + FRAME.codec] = codec
    chunk[base + FRAME.crc] = crc
    return frame
  }

  framePlace(frame: number): FramePlace {
    const chunk = this.frames.chunkOf(frame)
    const base = this.frames.baseOf(frame)
    return {
      frame,
      packId: this.packs[chunk[base + FRAME.pack] ?? 0] ?? '',
      offset: chunk[base + FRAME.offset] ?? 0,
      storedLength: chunk[base + FRAME.storedLength] ?? 0,
      rawLength: chunk[base + FRAME.rawLength] ?? 0,
      codec: chunk[base + FRAME.codec] ?? 0,
      crc: chunk[base + FRAME.crc] ?? 0,
    }
  }

  place(block: number): BlockPlace {
    return { ...this.framePlace(this.frameOf(block)), inner: this.innerOf(block), length: this.lengthOf(block) }
  }

  frameOf(block: number): number {
    return this.blocks.get(block, BLOCK.frame)
  }

  innerOf(block: number): number {
    return this.blocks.get(block, BLOCK.inner)
  }

  lengthOf(block: number): number {
    return this.blocks.get(block, BLOCK.length)
  }

  addTable(packId: string, table: Uint8Array, shift = 0): void {
    let number = -1
    visitTable(table, {
      frame: (row) => {
        number = this.addFrame(packId, row, shift)
      },
      block: (idAt, inner, length) => this.addBlock(number, table, idAt, inner, length),
    })
  }

  notePack(packId: string, table: Uint8Array): void {
    this.packNotes.set(packId, noteOfPack(table))
  }

  addPack(packId: string, table: Uint8Array): void {
    this.addTable(packId, table)
    this.notePack(packId, table)
  }

  *addAll(other: BlockIndex): Generator<void, void, undefined> {
    for (const [packId, note] of other.packNotes) this.packNotes.set(packId, note)
    let number = -1
    let block = 0
    yield* other.visit({
      frame: (place) => {
        number = this.addFrame(place.packId, place)
      },
      block: (from, at, inner, length) => {
        const before = this.blockCount
        this.addBlock(number, from, at, inner, length)
        if (this.blockCount > before && other.isDamaged(block)) this.damaged.add(before)
        block++
      },
    })
  }

  succeed(other: BlockIndex): void {
    for (const _ of this.addAll(other));
    this.losses = other.losses
  }

  *visit(on: {
    frame(place: FramePlace): void
    block(ids: Uint8Array, at: number, inner: number, length: number): void
  }): Generator<void, void, undefined> {
    const { ids, blocks } = this
    let frame = -1
    for (let block = 0; block < this.blockCount; block++) {
      if (this.frameOf(block) !== frame) {
        frame = this.frameOf(block)
        on.frame(this.framePlace(frame))
      }
      on.block(ids.chunkOf(block), ids.baseOf(block), blocks.get(block, BLOCK.inner), blocks.get(block, BLOCK.length))
      if (block % BLOCKS_A_TURN === 0) yield
    }
  }

  markDamaged(block: number): void {
    this.damaged.add(block)
    this.losses++
  }

  markSound(block: number): void {
    this.damaged.delete(block)
  }

  isDamaged(block: number): boolean {
    return this.damaged.has(block)
  }

  filter(): SharedArrayBuffer {
    this.shared ??= this.makeFilter()
    return this.shared.buffer
  }

  hint(id: Uint8Array, at = 0): void {
    if (!this.isFilterFull()) this.tellFilter(id, at)
  }
}

// A block of which a few sectors have changed, as a manifest lists it: the block that it was, and a block of the changed
// sectors. So a chunk of a few KiB that a game has saved adds these and not 64 KiB. See docs/decisions/patches.md.
import { BLOCK_BYTES, ID_BYTES, SECTOR_BYTES } from './format.ts'

export const BLOCK_SECTORS = BLOCK_BYTES / SECTOR_BYTES
/** With more changed sectors, the block is stored whole: to store a patch would save nothing to speak of. */
export const PATCHED_SECTORS_AT_MOST = BLOCK_SECTORS - 2
/**
 * Of a patch that becomes a larger one: mostly what was in it before has not changed since, and is stored once more each time.
 * Beyond this many that costs more, over the next few backups, than to store the block whole and begin anew.
 */
export const REPEATED_SECTORS_AT_MOST = 5

const SECTORS_BYTES = 2
/** Where they stand: which sectors have changed, the block's own id, that of what it was, that of the changed sectors. */
export const PATCHED = {
  sectors: 0,
  name: SECTORS_BYTES,
  base: SECTORS_BYTES + ID_BYTES,
  patch: SECTORS_BYTES + 2 * ID_BYTES,
  bytes: SECTORS_BYTES + 3 * ID_BYTES,
} as const

export interface Patch {
  /** The lowest bit is the first sector. */
  sectors: number
  /** Each id of 32 bytes. */
  base: Uint8Array
  patch: Uint8Array
}

export function writePatched(target: Uint8Array, at: number, name: Uint8Array, { sectors, base, patch }: Patch): void {
  target[at] = sectors & 0xff
  target[at + 1] = sectors >> 8
  target.set(name, at + PATCHED.name)
  target.set(base, at + PATCHED.base)
  target.set(patch, at + PATCHED.patch)
}

export const sectorsAt = (bytes: Uint8Array, at: number) => (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8)

export function patchAt(bytes: Uint8Array, at: number): Patch {
  const idAt = (from: number) => bytes.subarray(at + from, at + from + ID_BYTES)
  return { sectors: sectorsAt(bytes, at), base: idAt(PATCHED.base), patch: idAt(PATCHED.patch) }
}

/** Whether the block that is listed there is read under its own id, and not as a patch. */
export type IsWhole = (at: number) => boolean

export const neverWhole: IsWhole = () => false

/**
 * Where what it is a patch of, or the patch, is lost or damaged, and some backup has stored the block itself since. `holds`: whether
 * the store has what is named there.
 */
export function wholeWhere(holds: (bytes: Uint8Array, idAt: number) => boolean, bytes: Uint8Array): IsWhole {
  return (at) =>
    !(holds(bytes, at + PATCHED.base) && holds(bytes, at + PATCHED.patch)) && holds(bytes, at + PATCHED.name)
}

/** How many have changed. */
export function countSectors(sectors: number): number {
  let count = 0
  for (let left = sectors; left !== 0; left &= left - 1) count++
  return count
}

/** What of a block stands where in a file. */
export interface Piece {
  /** Where the id stands; -1 for zeros. */
  idAt: number
  /** In the file. */
  offset: number
  length: number
  /** In the block. */
  from: number
  /** Of the block. */
  blockBytes: number
}

/** The pieces of the block that is listed there, in order: sectors of what it was, and changed ones. */
export function* piecesOfPatched(bytes: Uint8Array, at: number, offset: number): Generator<Piece, void, undefined> {
  const sectors = sectorsAt(bytes, at)
  const patchBytes = countSectors(sectors) * SECTOR_BYTES
  let end = 0
  const before = (start: number): Piece[] =>
    end === start
      ? []
      : [{ idAt: at + PATCHED.base, offset: offset + end, length: start - end, from: end, blockBytes: BLOCK_BYTES }]
  for (const { from, start, length } of sectorRuns(sectors)) {
    yield* before(start)
    yield { idAt: at + PATCHED.patch, offset: offset + start, length, from, blockBytes: patchBytes }
    end = start + length
  }
  yield* before(BLOCK_BYTES)
}

/** Changed sectors that follow each other: where they stand in the block, and from where on in the patch. */
export function* sectorRuns(sectors: number): Generator<{ from: number; start: number; length: number }> {
  let from = 0
  for (let sector = 0; sector < BLOCK_SECTORS; ) {
    const first = sector
    while (sector < BLOCK_SECTORS && isChanged(sectors, sector)) sector++
    const length = (sector - first) * SECTOR_BYTES
    if (length > 0) yield { from, start: first * SECTOR_BYTES, length }
    else sector++
    from += length
  }
}

export const isChanged = (sectors: number, sector: number) => (sectors & (1 << sector)) !== 0

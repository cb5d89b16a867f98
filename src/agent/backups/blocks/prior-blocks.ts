// The blocks of a file that has changed, as the last backup lists them: whoever reads it again is told by them what is as it
// was, and of what a block that differs in a few sectors is to be listed as a patch. See docs/decisions/patches.md.
import { namesOf } from '../format/block-runs.ts'
import { BLOCK_BYTES, ID_BYTES } from '../format/format.ts'
import { countSectors, type IsWhole, type Patch, patchAt, wholeWhere } from '../format/patched.ts'
import type { BlockIndex } from './block-index.ts'

/**
 * Of a row of `PriorRange.rows`; `storedLength` is 0 where the block cannot be patched. `pack`: by its place in `packs`. `patched`:
 * how many sectors of the block were patched.
 */
export const BASE = {
  pack: 0,
  offset: 1,
  storedLength: 2,
  codec: 3,
  crc: 4,
  inner: 5,
  rawLength: 6,
  patched: 7,
  fields: 8,
} as const

/** Of a part of a file. Each array has memory of its own: a message carries the whole of what an array is a view of. */
export interface PriorRange {
  /** Of each block; zeros for one of zeros. */
  names: Uint8Array
  /** What each may be a patch of, and where that is. */
  bases: Uint8Array
  rows: Float64Array
  packs: string[]
}

export interface PriorBlocks {
  /** `from` is where a block begins. */
  between(from: number, to: number): PriorRange
  /** How a block is listed whose name is what it was; undefined for one that is listed by its name. */
  patchOf(block: number, ids: Uint8Array, idAt: number): Patch | undefined
  /** What a patch of the block is one of. */
  baseOf(block: number): Uint8Array
}

/** `isHere`: whether the pack can be read at once. */
export function createPriorBlocks(
  index: BlockIndex,
  isHere: (packId: string) => boolean,
  content: Uint8Array,
): PriorBlocks {
  const patched = new Map<number, Patch>()
  const names = namesOf(content, (block, at) => patched.set(block, patchAt(content, at)))
  const count = names.length / ID_BYTES

  function baseOf(block: number): Uint8Array {
    return patched.get(block)?.base ?? names.subarray(block * ID_BYTES, (block + 1) * ID_BYTES)
  }

  function isLost(patch: Patch | undefined): boolean {
    return patch !== undefined && (index.find(patch.base) < 0 || index.find(patch.patch) < 0)
  }

  function addRow(rows: Float64Array, at: number, packs: string[], block: number): void {
    const found = index.find(baseOf(block))
    if (found < 0) return
    const { packId, offset, storedLength, codec, crc, inner, rawLength, length } = index.place(found)
    if (length !== BLOCK_BYTES || !isHere(packId)) return
    const known = packs.lastIndexOf(packId)
    rows[at + BASE.pack] = known >= 0 ? known : packs.push(packId) - 1
    rows[at + BASE.offset] = offset
    rows[at + BASE.storedLength] = storedLength
    rows[at + BASE.codec] = codec
    rows[at + BASE.crc] = crc
    rows[at + BASE.inner] = inner
    rows[at + BASE.rawLength] = rawLength
    rows[at + BASE.patched] = countSectors(patched.get(block)?.sectors ?? 0)
  }

  return {
    between(from, to) {
      const first = from / BLOCK_BYTES
      const end = Math.max(first, Math.min(count, Math.ceil(to / BLOCK_BYTES)))
      const bases = new Uint8Array((end - first) * ID_BYTES)
      const rows = new Float64Array((end - first) * BASE.fields)
      const packs: string[] = []
      const listed = names.slice(first * ID_BYTES, end * ID_BYTES)
      for (let block = first; block < end; block++) {
        bases.set(baseOf(block), (block - first) * ID_BYTES)
        addRow(rows, (block - first) * BASE.fields, packs, block)
        // What is lost of a patch is made again, if it can be.
        if (isLost(patched.get(block))) listed.fill(0, (block - first) * ID_BYTES, (block - first + 1) * ID_BYTES)
      }
      return { names: listed, bases, rows, packs }
    },
    patchOf(block, ids, idAt) {
      const patch = patched.get(block)
      return patch && isSameId(names, block * ID_BYTES, ids, idAt) ? patch : undefined
    },
    baseOf,
  }
}

/** Which patched blocks of a content, or of a chunk of a manifest, the store has under their own ids alone. */
export const wholeIn = (index: Pick<BlockIndex, 'find'>, bytes: Uint8Array): IsWhole =>
  wholeWhere((of, idAt) => index.find(of, idAt) >= 0, bytes)

export function isSameId(a: Uint8Array, aAt: number, b: Uint8Array, bAt: number): boolean {
  if (aAt + ID_BYTES > a.length) return false
  for (let byte = 0; byte < ID_BYTES; byte++) if (a[aAt + byte] !== b[bAt + byte]) return false
  return true
}

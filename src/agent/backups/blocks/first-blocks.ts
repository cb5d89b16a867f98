// Finds the first occurrence of each content among blocks that are read together: files are often alike.

import { ID_BYTES } from '../format/format.ts'
import { wordAt } from './block-filter.ts'

const SLOTS_A_BLOCK = 2

/**
 * `ids` has room for so many ids. What comes back is asked once for each, by where it stands, and tells whether no other
 * that it was asked for before is the same.
 */
export function createFirsts(ids: Buffer, count: number): (idAt: number) => boolean {
  let size = 1
  while (size < count * SLOTS_A_BLOCK) size *= 2
  /** 1 + where the id stands; 0 for none. */
  const slots = new Uint32Array(size)
  return (idAt) => {
    let slot = wordAt(ids, idAt) & (size - 1)
    for (let held = slots[slot] ?? 0; held !== 0; held = slots[slot] ?? 0) {
      if (ids.compare(ids, held - 1, held - 1 + ID_BYTES, idAt, idAt + ID_BYTES) === 0) return false
      slot = (slot + 1) & (size - 1)
    }
    slots[slot] = idAt + 1
    return true
  }
}

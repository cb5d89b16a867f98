// How much of what is not there a backup reads. Node cannot ask where the holes of a file are, and st_blocks alone does not
// prove that a file is empty (docs/decisions/sparse-files.md), so holes are read like data, and counted.
import { BACKUP_HOLE_BYTES, SPARSE_RATIO } from '../../contract/limits.ts'

const BLOCK_UNIT_BYTES = 512n

export interface HoleBudget {
  /** Whether the file may be read; what it has of holes is taken from the budget then. */
  take(stats: { size: bigint; blocks: bigint }): boolean
}

export function createHoleBudget(): HoleBudget {
  let left = BigInt(BACKUP_HOLE_BYTES)
  return {
    take({ size, blocks }) {
      const heldBytes = blocks * BLOCK_UNIT_BYTES
      const holeBytes = size - heldBytes
      if (holeBytes <= heldBytes * BigInt(SPARSE_RATIO)) return true
      if (holeBytes > left) return false
      left -= holeBytes
      return true
    },
  }
}

// How many bytes of holes a backup or an archive reads. Node cannot ask where the holes of a file are, and st_blocks
// alone does not prove that a file is empty (docs/decisions/sparse-files.md), so holes are read like data, and counted.
import { fail } from '../../../contract/errors.ts'
import { HOLES_READ_MAX_BYTES, SPARSE_RATIO } from '../../../contract/fixed-limits.ts'

const BLOCK_UNIT_BYTES = 512n

export interface HoleBudget {
  /** Whether the file may be read; what it has of holes is taken from the budget then. */
  take(stats: { size: bigint; blocks: bigint }): boolean
}

export function createHoleBudget(): HoleBudget {
  let left = BigInt(HOLES_READ_MAX_BYTES)
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

/** Where half of what was asked for would pass for all of it: a file is neither left out nor read for days. */
export function requireReadable(holes: HoleBudget, what: string, stats: { size: bigint; blocks: bigint }): void {
  if (holes.take(stats)) return
  const heldBytes = stats.blocks * BLOCK_UNIT_BYTES
  throw fail(
    'too_large',
    `${what} is mostly holes: it has ${stats.size} bytes, and ${heldBytes} of them are on the disk.`,
  )
}

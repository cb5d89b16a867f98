// What things take of a disk: bytes, by the blocks that the file system gives, and entries.

export const BLOCK_BYTES = 4096

export interface Amount {
  bytes: number
  /** Files, directories, symlinks and whatever else has a name. */
  entries: number
}

export const NOTHING: Amount = { bytes: 0, entries: 0 }

export const sum = (a: Amount, b: Amount): Amount => ({ bytes: a.bytes + b.bytes, entries: a.entries + b.entries })
export const minus = ({ bytes, entries }: Amount): Amount => ({ bytes: -bytes, entries: -entries })
export const isSome = ({ bytes, entries }: Amount) => bytes > 0 || entries > 0
export const isWithin = (inner: Amount, outer: Amount) => inner.bytes <= outer.bytes && inner.entries <= outer.entries

export function atLeastNothing({ bytes, entries }: Amount): Amount {
  return { bytes: Math.max(0, bytes), entries: Math.max(0, entries) }
}

export function larger(a: Amount, b: Amount): Amount {
  return { bytes: Math.max(a.bytes, b.bytes), entries: Math.max(a.entries, b.entries) }
}

export function smaller(a: Amount, b: Amount): Amount {
  return { bytes: Math.min(a.bytes, b.bytes), entries: Math.min(a.entries, b.entries) }
}

export function spaceOf(bytes: number, files = 1): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES + (files - 1) * BLOCK_BYTES
}

/** Of that, what fills whole blocks. */
export function blocksIn(bytes: number): number {
  return Math.floor(bytes / BLOCK_BYTES) * BLOCK_BYTES
}

export function diskBytes(stats: { blocks: bigint }): number {
  return Number(stats.blocks) * 512
}

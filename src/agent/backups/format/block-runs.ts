// A file's blocks as a manifest lists them: runs of ids, and runs of blocks of zeros. See docs/backup-format.md.
import { concat } from '../../../kit/bytes.ts'
import { BLOCK_BYTES, ID_BYTES } from './format.ts'

/** Of the blocks in order: the ids of all, and which of them are of nothing but zeros. */
export function contentOf(ids: Uint8Array, isZero: (block: number) => boolean): Uint8Array {
  if (ids.length === ID_BYTES && !isZero(0)) return onlyBlock(ids, 0)
  const parts: Uint8Array[] = []
  const count = ids.length / ID_BYTES
  for (let block = 0; block < count; ) {
    const first = block
    const areZero = isZero(first)
    while (block < count && isZero(block) === areZero) block++
    parts.push(varintBytes((block - first) * 2 + (areZero ? 1 : 0)))
    if (!areZero) parts.push(ids.subarray(first * ID_BYTES, block * ID_BYTES))
  }
  return concat(parts)
}

/** Whether it is one block, which then begins at `ONLY_ID`, and not one of zeros. */
export function isOneBlock({ content, sizeBytes }: { content: Uint8Array; sizeBytes: number }): boolean {
  return content.length === ONLY_ID + ID_BYTES && content[0] === 2 && sizeBytes > 0 && sizeBytes <= BLOCK_BYTES
}

export const ONLY_ID = 1

/** The content of most files: the block whose id stands there. */
export function onlyBlock(ids: Uint8Array, idAt: number): Uint8Array {
  const content = new Uint8Array(ONLY_ID + ID_BYTES)
  content[0] = 2
  for (let byte = 0; byte < ID_BYTES; byte++) content[ONLY_ID + byte] = ids[idAt + byte] ?? 0
  return content
}

function varintBytes(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80)
    rest = Math.floor(rest / 0x80)
  }
  return Uint8Array.of(...bytes, rest)
}

/** Calls back for each block: where its id stands in `content` (-1: all zeros), its offset in the file, its length. */
export function eachBlock(
  entry: { content: Uint8Array; sizeBytes: number },
  visit: (idAt: number, offset: number, length: number) => void,
): void {
  const { content, sizeBytes } = entry
  let offset = 0
  visitRuns(content, 0, content.length, (idAt) => {
    visit(idAt, offset, Math.min(BLOCK_BYTES, sizeBytes - offset))
    offset += BLOCK_BYTES
  })
}

/** The blocks that hold bytes from `start` up to, not including, `end`, one at a time: of a sparse file there are many. */
export function* blocksBetween(
  { content, sizeBytes }: { content: Uint8Array; sizeBytes: number },
  start: number,
  end: number,
): Generator<{ idAt: number; offset: number; length: number }, void, undefined> {
  let offset = 0
  for (let at = 0; at < content.length && offset < end; ) {
    const head = varintAt(content, at)
    at += varintLength(content, at)
    const isZero = head % 2 === 1
    const count = Math.floor(head / 2)
    const skipped = Math.min(count, Math.max(0, Math.floor((start - offset) / BLOCK_BYTES)))
    if (!isZero) at += skipped * ID_BYTES
    offset += skipped * BLOCK_BYTES
    for (let left = count - skipped; left > 0 && offset < end; left--) {
      yield { idAt: isZero ? -1 : at, offset, length: Math.min(BLOCK_BYTES, sizeBytes - offset) }
      if (!isZero) at += ID_BYTES
      offset += BLOCK_BYTES
    }
  }
}

/** The names of a file's blocks, null for one of zeros. Each in memory of its own: a message carries the whole of it. */
export function idsOf(entry: { content: Uint8Array; sizeBytes: number }): (Uint8Array | null)[] {
  const ids: (Uint8Array | null)[] = []
  eachBlock(entry, (idAt) => {
    ids.push(idAt < 0 ? null : new Uint8Array(entry.content.subarray(idAt, idAt + ID_BYTES)))
  })
  return ids
}

/** Block by block: where its id stands, or -1 for a block of zeros. */
export function visitRuns(bytes: Uint8Array, start: number, end: number, visit: (idAt: number) => void): void {
  let at = start
  while (at < end) {
    const head = varintAt(bytes, at)
    at += varintLength(bytes, at)
    const isZero = head % 2 === 1
    for (let left = Math.floor(head / 2); left > 0; left--) {
      visit(isZero ? -1 : at)
      if (!isZero) at += ID_BYTES
    }
  }
}

export function varintAt(bytes: Uint8Array, at: number): number {
  let value = 0
  let scale = 1
  for (let next = at; ; next++) {
    const byte = bytes[next] ?? 0
    value += (byte & 0x7f) * scale
    if (byte < 0x80) return value
    scale *= 0x80
  }
}

export function varintLength(bytes: Uint8Array, at: number): number {
  let next = at
  while ((bytes[next] ?? 0) >= 0x80) next++
  return next - at + 1
}

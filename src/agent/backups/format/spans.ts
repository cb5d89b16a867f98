// Spans: frames that follow each other in a pack, with one checksum for all of them, which is taken when they are written. By
// it a restore tells in a sixth of the time that they are still what they were. See docs/decisions/spans.md.
import { asBuffer, concat } from '../../../kit/bytes.ts'
import { digest, ID_BYTES } from './format.ts'
import { createGmac, GMAC_BYTES, GMAC_KEY_BYTES, type Gmac } from './gmac.ts'

/** Of a span, at most: whoever reads has to hold all of it. */
export const SPAN_BYTES = 1024 * 1024
const ROW_BYTES = 8 + GMAC_BYTES

/** In a pack. */
export interface Span {
  offset: number
  length: number
}

export interface SpanBuilder {
  /** The next frame ends there; `bytes` hold all up to it. */
  addFrame(bytes: Buffer, end: number): void
  /** The last frame has been added. Rows in memory of their own. */
  take(bytes: Buffer): Uint8Array
}

/** Without a `gmac` there are none. */
export function createSpanBuilder(gmac: Gmac | null): SpanBuilder {
  const rows: Buffer[] = []
  let from = 0
  let last = 0

  function close(bytes: Buffer): void {
    if (!gmac || last === from) return
    const row = Buffer.alloc(ROW_BYTES)
    row.writeUInt32LE(from, 0)
    row.writeUInt32LE(last - from, 4)
    row.set(gmac(bytes.subarray(from, last)), 8)
    rows.push(row)
    from = last
  }

  return {
    addFrame(bytes, end) {
      if (end - from > SPAN_BYTES) close(bytes)
      last = end
    },
    take(bytes) {
      close(bytes)
      return concat(rows)
    },
  }
}

/** The same rows, of what begins `by` bytes further on. */
export function shiftSpans(rows: Uint8Array, by: number): Buffer {
  const shifted = Buffer.from(rows)
  for (let at = 0; at < shifted.length; at += ROW_BYTES) shifted.writeUInt32LE(shifted.readUInt32LE(at) + by, at)
  return shifted
}

/** As it stands in a pack: the key, the rows, and the digest of both. */
export function encodeSpans(packId: string, key: Uint8Array, rows: readonly Uint8Array[]): Buffer {
  const list = concat([key, ...rows])
  return Buffer.concat([list, digestOf(packId, list)])
}

/** Of the pack's id too: a list that agrees with a pack that stands in the place of another says nothing of that. */
const digestOf = (packId: string, list: Uint8Array) => digest(concat([Buffer.from(packId, 'hex'), list]))

export interface SpanList {
  /** The one that holds the byte at this offset, if there is one. To be asked in the order of the pack. */
  at(offset: number): Span | undefined
  /** `span` is what `at` has answered last. */
  isSound(span: Span, bytes: Uint8Array): boolean
  /** `at` does not answer the one that it has answered last any more. */
  giveUp(): void
}

/** Undefined where it is not what was written. */
export function decodeSpans(packId: string, stored: Uint8Array): SpanList | undefined {
  const bytes = asBuffer(stored)
  const end = bytes.length - ID_BYTES
  if (end < GMAC_KEY_BYTES || (end - GMAC_KEY_BYTES) % ROW_BYTES !== 0) return undefined
  // A copy: it may be in memory that is shared, which not everything reads.
  const list = Buffer.from(bytes.subarray(0, end))
  if (digestOf(packId, list).compare(bytes, end) !== 0) return undefined
  const gmac = createGmac(list.subarray(0, GMAC_KEY_BYTES))
  let row = GMAC_KEY_BYTES
  return {
    giveUp() {
      row += ROW_BYTES
    },
    at(offset) {
      while (row < end && list.readUInt32LE(row) + list.readUInt32LE(row + 4) <= offset) row += ROW_BYTES
      if (row === end || list.readUInt32LE(row) > offset) return undefined
      return { offset: list.readUInt32LE(row), length: list.readUInt32LE(row + 4) }
    },
    isSound: ({ length }, stretch) =>
      stretch.length === length && gmac(stretch).compare(list, row + 8, row + ROW_BYTES) === 0,
  }
}

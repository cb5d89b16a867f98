// Games keep data that is compressed already in sectors of 4 KiB, padded with zeros. Leaving those zeros out saves what
// zstd would save on such a block, in a tenth of the time (`npm run bench -- backups`, `first`).

import { BLOCK_BYTES, SECTOR_BYTES } from './format.ts'

const LENGTH_BYTES = 2
const WORD_BYTES = 4

/** The length to keep of each sector, two bytes each, and then what is kept of them. */
export function trimSectors(raw: Buffer, into: Buffer): Buffer {
  const source = raw.byteOffset % WORD_BYTES === 0 ? raw : Buffer.from(raw)
  const words = wordsOf(source.buffer)
  const lengths = lengthsFor(raw.length)
  let at = lengths.length
  // Sectors that follow each other without a gap are copied as one.
  let from = 0
  for (let start = 0, head = 0; start < raw.length; start += SECTOR_BYTES) {
    const sectorEnd = Math.min(raw.length, start + SECTOR_BYTES)
    const end = endOfContent(source, words, start, sectorEnd)
    lengths[head++] = (end - start) & 0xff
    lengths[head++] = (end - start) >> 8
    if (end === sectorEnd && sectorEnd < raw.length) continue
    source.copy(into, at, from, end)
    at += end - from
    from = sectorEnd
  }
  lengths.copy(into)
  return into.subarray(0, at)
}

/** Filled here and copied at once: what they go into is shared memory, which is slow to write byte by byte. */
const lengthsOfBlock = Buffer.alloc((BLOCK_BYTES / SECTOR_BYTES) * LENGTH_BYTES)

function lengthsFor(rawLength: number): Buffer {
  return rawLength === BLOCK_BYTES ? lengthsOfBlock : Buffer.alloc(trimmedBound(rawLength) - rawLength)
}

/** What `trimSectors` needs at most for a block of that length. */
export function trimmedBound(rawLength: number): number {
  return rawLength + Math.ceil(rawLength / SECTOR_BYTES) * LENGTH_BYTES
}

/** Where the zeros at the end of a stretch begin. They are most of what is looked at, so it is done by words. */
function endOfContent(raw: Buffer, words: Uint32Array, start: number, stretchEnd: number): number {
  let end = stretchEnd
  while (end % WORD_BYTES !== 0 && end > start && raw[end - 1] === 0) end--
  if (end % WORD_BYTES === 0) {
    const first = (raw.byteOffset + start) / WORD_BYTES
    let word = (raw.byteOffset + end) / WORD_BYTES
    while (word > first && words[word - 1] === 0) word--
    end = word * WORD_BYTES - raw.byteOffset
  }
  while (end > start && raw[end - 1] === 0) end--
  return end
}

/** Nearly always the memory that was asked for last. */
let lastWords = new Uint32Array()

function wordsOf(buffer: ArrayBufferLike): Uint32Array {
  if (lastWords.buffer !== buffer) lastWords = new Uint32Array(buffer as ArrayBuffer, 0, buffer.byteLength >> 2)
  return lastWords
}

/** Throws unless the bytes are the only ones that `trimSectors` makes of what they stand for. Fills `raw`. */
export function untrimSectors(stored: Buffer, raw: Buffer): void {
  let head = 0
  let at = Math.ceil(raw.length / SECTOR_BYTES) * LENGTH_BYTES
  let from = 0
  for (let start = 0; start < raw.length; start += SECTOR_BYTES) {
    const sectorEnd = Math.min(raw.length, start + SECTOR_BYTES)
    const kept = (stored[head] ?? 0) | ((stored[head + 1] ?? 0) << 8)
    head += LENGTH_BYTES
    const length = start + kept - from
    const end = at + length
    if (start + kept > sectorEnd || end > stored.length || (kept > 0 && stored[end - 1] === 0))
      throw new Error('its sectors are damaged')
    if (start + kept === sectorEnd && sectorEnd < raw.length) continue
    stored.copy(raw, from, at, end)
    raw.fill(0, start + kept, sectorEnd)
    at = end
    from = sectorEnd
  }
  if (at !== stored.length) throw new Error('not as long as it was')
}

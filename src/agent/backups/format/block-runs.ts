// A file's blocks as a manifest lists them: runs of ids, runs of blocks of zeros, and blocks of which a few sectors have
// changed. See docs/backup-format.md.
import { concat } from '../../../kit/bytes.ts'
import { BLOCK_BYTES, ID_BYTES, SECTOR_BYTES } from './format.ts'
import {
  countSectors,
  type IsWhole,
  neverWhole,
  PATCHED,
  type Patch,
  type Piece,
  piecesOfPatched,
  sectorsAt,
  writePatched,
} from './patched.ts'

type Content = { content: Uint8Array; sizeBytes: number }

/** In place of a run: one patched block follows. */
const PATCHED_HEAD = 1

/** Of the blocks in order: the ids of all, which of them are of nothing but zeros, and which are listed as patched. */
export function contentOf(
  ids: Uint8Array,
  isZero: (block: number) => boolean,
  patchOf: (block: number) => Patch | undefined = () => undefined,
): Uint8Array {
  const parts: Uint8Array[] = []
  const count = ids.length / ID_BYTES
  const kindOf = (block: number) => (isZero(block) ? 'zeros' : (patchOf(block) ?? 'ids'))
  for (let block = 0; block < count; ) {
    const first = block++
    const kind = kindOf(first)
    if (typeof kind !== 'string') {
      parts.push(patchedBlock(ids.subarray(first * ID_BYTES, block * ID_BYTES), kind))
      continue
    }
    while (block < count && kindOf(block) === kind) block++
    parts.push(varintBytes((block - first) * 2 + (kind === 'zeros' ? 1 : 0)))
    if (kind === 'ids') parts.push(ids.subarray(first * ID_BYTES, block * ID_BYTES))
  }
  return concat(parts)
}

function patchedBlock(name: Uint8Array, patch: Patch): Uint8Array {
  const bytes = new Uint8Array(1 + PATCHED.bytes)
  bytes[0] = PATCHED_HEAD
  writePatched(bytes, 1, name, patch)
  return bytes
}

/** Whether it is one block, which then begins at `ONLY_ID`, and not one of zeros. */
export function isOneBlock({ content, sizeBytes }: Content): boolean {
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

interface Runs {
  /** `count` ids, from there on. */
  ids(at: number, count: number): void
  zeros(count: number): void
  /** See `PATCHED` for what stands there. */
  patched(at: number): void
}

function visitRuns(bytes: Uint8Array, start: number, end: number, runs: Runs): void {
  for (let at = start; at < end; ) {
    const head = varintAt(bytes, at)
    at += varintLength(bytes, at)
    const count = Math.floor(head / 2)
    if (head === PATCHED_HEAD) {
      runs.patched(at)
      at += PATCHED.bytes
    } else if (head % 2 === 1) runs.zeros(count)
    else {
      runs.ids(at, count)
      at += count * ID_BYTES
    }
  }
}

/** Where the ids stand of all that must be in the store for the content that is there. */
export function visitNeeded(
  bytes: Uint8Array,
  visit: (idAt: number) => void,
  isWhole: IsWhole = neverWhole,
  start = 0,
  end: number = bytes.length,
): void {
  visitRuns(bytes, start, end, {
    ids(at, count) {
      for (let left = count, idAt = at; left > 0; left--, idAt += ID_BYTES) visit(idAt)
    },
    zeros() {},
    patched(at) {
      if (isWhole(at)) {
        visit(at + PATCHED.name)
        return
      }
      visit(at + PATCHED.base)
      visit(at + PATCHED.patch)
    },
  })
}

export interface Write {
  idAt: number
  /** In the file. */
  offset: number
  /** Of the block that has the id. */
  length: number
  /** 0 where all of it is written there; else it is of these sectors of the block that begins there, one after another. */
  sectors: number
}

/**
 * What to write to make the file, but for zeros: first those of whole blocks, in any order, and once they are written what
 * of them is patched, in any order. So nearly all of it is written block after block.
 */
export function eachWrite(
  { content, sizeBytes }: Content,
  visit: (write: Write) => void,
  isWhole: IsWhole = neverWhole,
): void {
  let offset = 0
  const visitBlock = (idAt: number) => {
    visit({ idAt, offset, length: Math.min(BLOCK_BYTES, sizeBytes - offset), sectors: 0 })
  }
  visitRuns(content, 0, content.length, {
    ids(at, count) {
      for (let left = count, idAt = at; left > 0; left--, idAt += ID_BYTES) {
        visitBlock(idAt)
        offset += BLOCK_BYTES
      }
    },
    zeros(count) {
      offset += count * BLOCK_BYTES
    },
    patched(at) {
      const sectors = sectorsAt(content, at)
      if (isWhole(at)) visitBlock(at + PATCHED.name)
      else {
        visitBlock(at + PATCHED.base)
        visit({ idAt: at + PATCHED.patch, offset, length: countSectors(sectors) * SECTOR_BYTES, sectors })
      }
      offset += BLOCK_BYTES
    },
  })
}

/** What holds bytes from `start` up to, not including, `end`, one at a time: of a sparse file there is much. */
export function* piecesBetween(
  { content, sizeBytes }: Content,
  start: number,
  end: number,
  isWhole: IsWhole = neverWhole,
): Generator<Piece, void, undefined> {
  let offset = 0
  for (let at = 0; at < content.length && offset < end; ) {
    const head = varintAt(content, at)
    at += varintLength(content, at)
    if (head === PATCHED_HEAD) {
      if (offset + BLOCK_BYTES > start) yield* piecesOfListed(content, at, offset, start, end, isWhole(at))
      at += PATCHED.bytes
      offset += BLOCK_BYTES
      continue
    }
    const isZero = head % 2 === 1
    const count = Math.floor(head / 2)
    const skipped = Math.min(count, Math.max(0, Math.floor((start - offset) / BLOCK_BYTES)))
    if (!isZero) at += skipped * ID_BYTES
    offset += skipped * BLOCK_BYTES
    for (let left = count - skipped; left > 0 && offset < end; left--) {
      yield wholeBlock(isZero ? -1 : at, offset, Math.min(BLOCK_BYTES, sizeBytes - offset))
      if (!isZero) at += ID_BYTES
      offset += BLOCK_BYTES
    }
  }
}

function* piecesOfListed(
  content: Uint8Array,
  at: number,
  offset: number,
  start: number,
  end: number,
  isWhole: boolean,
): Generator<Piece, void, undefined> {
  if (isWhole) {
    yield wholeBlock(at + PATCHED.name, offset, BLOCK_BYTES)
    return
  }
  for (const piece of piecesOfPatched(content, at, offset))
    if (piece.offset < end && piece.offset + piece.length > start) yield piece
}

const wholeBlock = (idAt: number, offset: number, length: number): Piece => ({
  idAt,
  offset,
  length,
  from: 0,
  blockBytes: length,
})

/** The name of each block, in order; zeros for one of zeros. `onPatched`: where one is listed as patched. */
export function namesOf(content: Uint8Array, onPatched: (block: number, at: number) => void = () => {}): Uint8Array {
  const names = new Uint8Array(blockCountOf(content) * ID_BYTES)
  let block = 0
  visitRuns(content, 0, content.length, {
    ids(at, count) {
      names.set(content.subarray(at, at + count * ID_BYTES), block * ID_BYTES)
      block += count
    },
    zeros(count) {
      block += count
    },
    patched(at) {
      names.set(content.subarray(at + PATCHED.name, at + PATCHED.name + ID_BYTES), block * ID_BYTES)
      onPatched(block++, at)
    },
  })
  return names
}

/** How many blocks it lists. */
export function blockCountOf(content: Uint8Array): number {
  let blocks = 0
  const add = (count: number) => {
    blocks += count
  }
  visitRuns(content, 0, content.length, { ids: (_, count) => add(count), zeros: add, patched: () => add(1) })
  return blocks
}

/** As if no block were listed as patched: the same for the same bytes. */
export function asIfWhole(content: Uint8Array): Uint8Array {
  let isPatched = false
  visitRuns(content, 0, content.length, {
    ids() {},
    zeros() {},
    patched() {
      isPatched = true
    },
  })
  if (!isPatched) return content
  const names = namesOf(content)
  return contentOf(names, (block) => isNoName(names, block * ID_BYTES))
}

/** Whether the id that stands there is that of a block of zeros. */
export function isNoName(ids: Uint8Array, at: number): boolean {
  for (let next = at; next < at + ID_BYTES; next++) if (ids[next] !== 0) return false
  return true
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

// Finds out which sectors of a block have changed. What it was is read from its pack, on this thread, and
// checked by its name.
import type { BlobStore } from '../../../blobs/store.ts'
import { asBuffer } from '../../../kit/bytes.ts'
import { BASE, isSameId, type PriorRange } from '../blocks/prior-blocks.ts'
import { BLOCK_BYTES, FRAME_BYTES, ID_BYTES, packBlob, SECTOR_BYTES } from '../format/format.ts'
import {
  BLOCK_SECTORS,
  countSectors,
  PATCHED_SECTORS_AT_MOST,
  REPEATED_SECTORS_AT_MOST,
  sectorRuns,
} from '../format/patched.ts'
import { SEAL_OVERHEAD, type Sealer } from '../format/seal.ts'

const name = Buffer.allocUnsafeSlow(ID_BYTES)
/** A frame as it stands in its pack, and what it holds. */
const fetched = Buffer.allocUnsafeSlow(FRAME_BYTES + SEAL_OVERHEAD)
const decoded = Buffer.allocUnsafeSlow(FRAME_BYTES)
const gathered = Buffer.allocUnsafeSlow(PATCHED_SECTORS_AT_MOST * SECTOR_BYTES)

export interface Patcher {
  /** Before the first block of a part of a file. */
  begin(): void
  /**
   * Undefined where it cannot be told, or is too much. `block`: its place in `prior`. The bytes are good until the next call.
   */
  patch(raw: Buffer, prior: PriorRange, block: number): { sectors: number; bytes: Buffer } | undefined
}

/** A file that is written anew has hardly a sector left of what it was. After this many such blocks in a row most are not compared. */
const REWRITTEN_AT_MOST = 4
const COMPARED_ONE_IN = 16

/** For one thread. */
export function createPatcher(
  sealer: Sealer,
  blobs: Pick<BlobStore, 'openNow'>,
  now: () => number = () => performance.now(),
): Patcher {
  const pace = createPace()
  /** Blocks that follow each other, up to the last one, with too few sectors left for a patch. */
  let rewritten = 0
  let last = -1
  let passed = 0

  function readBase({ rows, packs, bases }: PriorRange, block: number): Buffer | undefined {
    const at = block * BASE.fields
    const [storedLength, inner] = [rows[at + BASE.storedLength] ?? 0, rows[at + BASE.inner] ?? 0]
    const packId = packs[rows[at + BASE.pack] ?? -1]
    if (storedLength === 0 || packId === undefined || !blobs.openNow || !pace.mayRead()) return undefined
    const begun = now()
    const encoded = {
      codec: rows[at + BASE.codec] ?? 0,
      crc: rows[at + BASE.crc] ?? 0,
      rawLength: rows[at + BASE.rawLength] ?? 0,
    }
    try {
      const range = { offset: rows[at + BASE.offset] ?? 0, length: storedLength }
      using pack = blobs.openNow(packBlob(packId))
      const stored = pack.get(range, fetched)
      if (stored.length !== storedLength) return undefined
      const frame = asBuffer(sealer.decode(stored, encoded, false, decoded))
      const was = frame.subarray(inner, inner + BLOCK_BYTES)
      sealer.nameTo(name, 0, was)
      return isSameId(bases, block * ID_BYTES, name, 0) ? was : undefined
    } catch {
      // Then it is stored whole. What is damaged is found and told by those who look for it.
      return undefined
    } finally {
      pace.add(now() - begun)
    }
  }

  /** One between them that has not changed says that the file was not written anew. */
  function isHopeless(block: number): boolean {
    if (block !== last + 1) rewritten = 0
    last = block
    return rewritten >= REWRITTEN_AT_MOST && ++passed % COMPARED_ONE_IN !== 0
  }

  return {
    begin() {
      rewritten = 0
      last = -1
    },
    patch(raw, prior, block) {
      if (isHopeless(block)) return undefined
      const was = readBase(prior, block)
      if (!was) return undefined
      const sectors = changedSectors(raw, was)
      const count = countSectors(sectors)
      rewritten = count > PATCHED_SECTORS_AT_MOST ? rewritten + 1 : 0
      if (count === 0 || count > PATCHED_SECTORS_AT_MOST) return undefined
      const before = prior.rows[block * BASE.fields + BASE.patched] ?? 0
      if (before > REPEATED_SECTORS_AT_MOST && count > before) return undefined
      for (const { from, start, length } of sectorRuns(sectors)) raw.copy(gathered, from, start, start + length)
      return { sectors, bytes: gathered.subarray(0, count * SECTOR_BYTES) }
    },
  }
}

/** Of the mean, what one more counts for, and at most how many milliseconds: a moment at which others had the disk says little. */
const WEIGHT = 1 / 16
const LONGEST_MS = 20
/** A disk that takes longer has to look for each: that costs more time than it saves in space. */
const SLOW_MS = 5
/** On such a disk only one in this many is read, to see whether it is still slow. */
const TRIED_ONE_IN = 16

function createPace() {
  let meanMs = 0
  let asked = 0
  return {
    mayRead: () => meanMs <= SLOW_MS || ++asked % TRIED_ONE_IN === 0,
    add(ms: number) {
      meanMs += (Math.min(ms, LONGEST_MS) - meanMs) * WEIGHT
    },
  }
}

function changedSectors(now: Buffer, was: Buffer): number {
  let sectors = 0
  for (let sector = 0; sector < BLOCK_SECTORS; sector++) {
    const [start, end] = [sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES]
    if (now.compare(was, start, end, start, end) !== 0) sectors |= 1 << sector
  }
  return sectors
}

// What our format asks of every byte of a first backup, by the code that does it: names, frames without their zeros, spans and
// prints. It is written as the least program writes, and that is all: no index, no manifest, no database, nobody who asks.
import { randomBytes } from 'node:crypto'
import { closeSync, fdatasyncSync, writeSync } from 'node:fs'
import { PRINTED_FROM_BYTES } from '../../../../src/agent/backups/blocks/block-prints.ts'
import { areGmacsWorthwhile, fastestBlockHash } from '../../../../src/agent/backups/blocks/block-speed.ts'
import { createGmac, GMAC_KEY_BYTES } from '../../../../src/agent/backups/format/gmac.ts'
import { createSealer } from '../../../../src/agent/backups/format/seal.ts'
import { packRanges, SEGMENT_BYTES, SLOT_BYTES } from '../../../../src/agent/backups/workers/worker-jobs.ts'
import { readFiles, type Tools } from '../../../../src/agent/backups/workers/worker-read.ts'
import { alignedSharedBuffer, wholeUnits } from '../../../../src/blobs/direct-io.ts'
import { createDirect, type LeastFile } from './steps.ts'

/** What is read in one go: a part of a large file, or many small ones. */
type Unit = { path: string; from: number; to: number; size: number }[]

export interface Formatting {
  kind: 'format'
  units: readonly Unit[]
  /** The unit that is next, for whoever has done one. */
  next: Int32Array
  store: string
}

const BATCH_BYTES = 1024 * 1024
const FILES_AT_ONCE = 256

export function unitsOf(files: readonly LeastFile[]): Unit[] {
  const units: Unit[] = []
  let small: Unit = []
  let smallBytes = 0
  for (const { path, size } of files) {
    if (size >= PRINTED_FROM_BYTES) {
      for (let from = 0; from < size; from += SEGMENT_BYTES)
        units.push([{ path, from, to: Math.min(size, from + SEGMENT_BYTES), size }])
      continue
    }
    if (small.length === 0 || small.length >= FILES_AT_ONCE || smallBytes + size > BATCH_BYTES) {
      small = []
      smallBytes = 0
      units.push(small)
    }
    small.push({ path, from: 0, to: size, size })
    smallBytes += size
  }
  return units
}

let tools: Tools | undefined
let slot: SharedArrayBuffer | undefined

function ownTools(): Tools {
  if (tools) return tools
  const blockHash = fastestBlockHash()
  const gmac = () => (areGmacsWorthwhile(blockHash) ? createGmac(randomBytes(GMAC_KEY_BYTES)) : null)
  tools = { sealer: createSealer(null, blockHash), patcher: null, print: gmac(), gmac: gmac() }
  return tools
}

/** Answers how many bytes there were to write. */
export function formatSome({ units, next, store }: Formatting, thread: number): number {
  slot ??= alignedSharedBuffer(SLOT_BYTES)
  const stored = Buffer.from(slot, 0, SLOT_BYTES)
  const fd = createDirect(store, thread)
  let bytes = 0
  for (let at = Atomics.add(next, 0, 1); at < units.length; at = Atomics.add(next, 0, 1)) {
    const ranges = (units[at] as Unit).map(({ path, from, to, size }) => ({
      ...{ fd: -1, address: path, from, to, size: 0n, mtimeNs: 0n, ctimeNs: 0n },
      ...{ isPrinted: size >= PRINTED_FROM_BYTES, known: null, prior: null },
    }))
    const { used, errors } = readFiles(ownTools(), { kind: 'read', files: packRanges(ranges), slot, filter: null })
    if (errors[0]) throw new Error(`a file could not be read: ${errors[0].error}`)
    if (wholeUnits(used) > 0) writeSync(fd, stored, 0, wholeUnits(used))
    bytes += used
  }
  fdatasyncSync(fd)
  closeSync(fd)
  return bytes
}

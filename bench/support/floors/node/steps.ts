// What the threads of the least program in Node do: with files as they come, and nothing but Node's own functions.
import { closeSync, constants, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { fastestBlockHash } from '../../../../src/agent/backups/blocks/block-speed.ts'
import { createHasher } from '../../../../src/agent/backups/format/format.ts'
import { alignedBuffer, wholeUnits } from '../../../../src/blobs/direct-io.ts'

export interface LeastFile {
  path: string
  size: number
  mtimeMs: number
  /** Where the prints of its blocks begin. */
  first: number
}

export interface Step {
  kind: 'first' | 'prints' | 'changed'
  files: readonly LeastFile[]
  /** The file that is next, for whoever has done one. */
  next: Int32Array
  /** Of every block of every file. */
  prints: Uint32Array
  store: string
  /** How much of what is new is written. */
  share: number
}

export const BLOCK = 65_536
const STEP_BYTES = 1024 * 1024
const PACK_BYTES = 4 * 1024 * 1024

const buffer = alignedBuffer(PACK_BYTES)
/** As our store names blocks. Which is fastest is found out before the first step begins. */
const nameOf = createHasher(fastestBlockHash())

/** Answers how many bytes were new. */
export function runStep(step: Step, thread: number): number {
  const { files, next, kind } = step
  const pack = kind === 'prints' ? undefined : openPack(step, thread)
  let bytes = 0
  for (let at = Atomics.add(next, 0, 1); at < files.length; at = Atomics.add(next, 0, 1)) {
    const file = files[at] as LeastFile
    const fd = openSync(file.path, 'r')
    for (let done = 0; done < file.size; done += STEP_BYTES) {
      const length = Math.min(STEP_BYTES, file.size - done)
      const start = pack?.place(length) ?? 0
      readSync(fd, buffer, start, length, done)
      const place = { start, length, print: file.first + done / BLOCK }
      if (!pack) printBlocks(step.prints, place)
      else bytes += pack.keep(kind === 'first' ? hashAll(place) : hashChanged(step.prints, place))
    }
    closeSync(fd)
  }
  pack?.close()
  return bytes
}

interface Place {
  start: number
  length: number
  print: number
}

const blocksOf = function* ({ start, length, print }: Place) {
  for (let at = 0; at < length; at += BLOCK)
    yield { block: buffer.subarray(start + at, start + Math.min(at + BLOCK, length)), print: print + at / BLOCK }
}

function hashAll(place: Place): number {
  for (const { block } of blocksOf(place)) nameOf(block)
  return place.length
}

function printBlocks(prints: Uint32Array, place: Place): void {
  for (const { block, print } of blocksOf(place)) prints[print] = crc32(block)
}

/** What changed is put where this began. */
function hashChanged(prints: Uint32Array, place: Place): number {
  let bytes = 0
  for (const { block, print } of blocksOf(place)) {
    if (prints[print] === crc32(block)) continue
    nameOf(block)
    block.copy(buffer, place.start + bytes)
    bytes += block.length
  }
  return bytes
}

/** A file that is written around the page cache. */
export function createDirect(store: string, thread: number): number {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_DIRECT
  return openSync(join(store, `pack-${thread}`), flags, 0o600)
}

/** What is new is gathered, and its share is written around the page cache from where it is. */
function openPack({ store, share }: Step, thread: number) {
  const fd = createDirect(store, thread)
  let filled = 0
  const write = () => {
    const bytes = wholeUnits(Math.ceil(filled * share))
    if (bytes > 0) writeSync(fd, buffer, 0, bytes)
    filled = 0
  }
  return {
    place(length: number): number {
      if (filled + length > PACK_BYTES) write()
      return filled
    },
    keep(bytes: number): number {
      filled += bytes
      return bytes
    },
    close() {
      write()
      fdatasyncSync(fd)
      closeSync(fd)
    },
  }
}

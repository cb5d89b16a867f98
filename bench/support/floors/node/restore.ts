// A restore by the least program in Node: every stored byte is read and summed up, every file is made and dated.
import { closeSync, constants, futimesSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { alignedBuffer, wholeUnits } from '../../../../src/blobs/direct-io.ts'

export interface PackedFile {
  path: string
  size: number
  mtimeSeconds: number
  /** In the pack. */
  offset: number
}

/** Some files that one thread makes: a large one, or those that lie together in a pack. */
export type Unit = readonly PackedFile[]

export interface Restoring {
  kind: 'restore'
  pack: string
  target: string
  units: readonly Unit[]
  /** The unit that is next, for whoever has done one. */
  next: Int32Array
}

const LARGE = 4 * 1024 * 1024
const STEP = 256 * 1024
/** Written around the page cache: what is synced anyway need not be copied there first. */
const DIRECT_BYTES = 1024 * 1024
const FILES_AT_ONCE = 1000

let buffer: Buffer | undefined

/** What a store has: the bytes of all files one after another, and a list of what they are. */
export function pack(
  tree: string,
  files: readonly { path: string; size: number; mtimeMs: number }[],
  to: string,
): void {
  const fd = openSync(to, 'wx')
  for (const { path } of files) writeSync(fd, readFileSync(path))
  closeSync(fd)
  const lines = files.map(({ path, size, mtimeMs }) => `${size} ${mtimeMs / 1000} ${path.slice(tree.length + 1)}\n`)
  writeFileSync(`${to}.list`, lines.join(''))
}

/** The folders, those above others first, and the files in units. */
export function readList(list: string): { folders: Set<string>; units: PackedFile[][]; fileCount: number } {
  const folders = new Set<string>()
  const units: PackedFile[][] = []
  let [offset, last, lastFolder] = [0, [] as PackedFile[], '']
  for (const line of readFileSync(list, 'utf8').split('\n').slice(0, -1)) {
    const [size = '', time = ''] = line.split(' ', 2)
    const file = { path: line.slice(size.length + time.length + 2), size: +size, mtimeSeconds: +time, offset }
    const folder = file.path.slice(0, Math.max(0, file.path.lastIndexOf('/')))
    const begun = last[0]?.offset ?? 0
    if (
      last.length === 0 ||
      last.length === FILES_AT_ONCE ||
      folder !== lastFolder ||
      offset + file.size - begun > LARGE
    ) {
      last = []
      units.push(last)
      for (let end = folder.indexOf('/'); end !== -1; end = folder.indexOf('/', end + 1))
        folders.add(folder.slice(0, end))
      if (folder) folders.add(folder)
      lastFolder = folder
    }
    last.push(file)
    offset += file.size
  }
  return { folders, units, fileCount: units.reduce((sum, unit) => sum + unit.length, 0) }
}

/** Answers a sum of all bytes. */
export function restoreSome({ pack, target, units, next }: Restoring): number {
  buffer ??= alignedBuffer(LARGE)
  const fd = openSync(pack, 'r')
  let sum = 0
  for (let at = Atomics.add(next, 0, 1); at < units.length; at = Atomics.add(next, 0, 1)) {
    const unit = units[at] as Unit
    const [first] = unit
    sum ^= unit.length === 1 && first && first.size >= DIRECT_BYTES ? large(fd, target, first) : small(fd, target, unit)
  }
  closeSync(fd)
  return sum
}

function large(pack: number, target: string, { path, size, mtimeSeconds, offset }: PackedFile): number {
  const data = buffer as Buffer
  const made = join(target, path)
  const fd = openSync(made, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_DIRECT)
  let sum = 0
  for (let done = 0; done < size; done += LARGE) {
    const bytes = Math.min(LARGE, size - done)
    for (let at = 0; at < bytes; at += STEP) {
      const length = Math.min(STEP, bytes - at)
      readSync(pack, data, at, length, offset + done + at)
      sum ^= crc32(data.subarray(at, at + length))
    }
    const whole = wholeUnits(bytes)
    if (whole > 0) writeSync(fd, data, 0, whole, done)
    if (whole < bytes) writeEnd(made, data.subarray(whole, bytes), done + whole)
  }
  futimesSync(fd, mtimeSeconds, mtimeSeconds)
  closeSync(fd)
  return sum
}

/** The end of a file that is no whole number of sectors goes through the cache. */
function writeEnd(path: string, bytes: Buffer, at: number): void {
  const fd = openSync(path, 'r+')
  writeSync(fd, bytes, 0, bytes.length, at)
  closeSync(fd)
}

function small(pack: number, target: string, unit: Unit): number {
  const data = buffer as Buffer
  const begin = unit[0]?.offset ?? 0
  const bytes = unit.reduce((sum, { size }) => sum + size, 0)
  readSync(pack, data, 0, bytes, begin)
  const sum = crc32(data.subarray(0, bytes))
  for (const { path, size, mtimeSeconds, offset } of unit) {
    const fd = openSync(`${target}/${path}`, 'wx')
    writeSync(fd, data, offset - begin, size)
    futimesSync(fd, mtimeSeconds, mtimeSeconds)
    closeSync(fd)
  }
  return sum
}

// Writes zip as a stream: sizes and checksums follow the data, and what is larger than 4 GiB uses zip64.
import { pipeline, Readable } from 'node:stream'
import { crc32, createDeflateRaw } from 'node:zlib'
import { nameToBytes } from '../sandbox/names.ts'
import { type ArchiveEntry, exactly } from './entry.ts'

const VERSION = 45
const UNIX = 3
const HAS_DESCRIPTOR_AND_UTF8 = 0x0808
const MAX32 = 0xffffffff
const FILE_TYPES = { file: 0o100000, directory: 0o040000, symlink: 0o120000 } as const

interface Written {
  entry: Pick<ArchiveEntry, 'kind' | 'mode'>
  name: Buffer
  time: number
  method: number
  crc: number
  compressed: number
  size: number
  offset: number
}

/** Keeps about a hundred bytes for each entry until the end, where the format wants its directory. */
export async function* writeZip(entries: AsyncIterable<ArchiveEntry>): AsyncGenerator<Uint8Array> {
  const directory: Written[] = []
  let offset = 0
  for await (const entry of entries) {
    const written = begin(entry, offset)
    directory.push(written)
    for await (const chunk of oneEntry(entry, written)) {
      offset += chunk.length
      yield chunk
    }
  }
  const start = offset
  for (const written of directory) {
    const record = centralRecord(written)
    offset += record.length
    yield record
  }
  yield end(directory.length, start, offset - start)
}

function begin(entry: ArchiveEntry, offset: number): Written {
  return {
    entry: { kind: entry.kind, mode: entry.mode },
    name: nameToBytes(entry.kind === 'directory' ? `${entry.path}/` : entry.path),
    time: dosTime(entry.modifiedAt),
    method: entry.kind === 'file' && entry.sizeBytes > 0 ? 8 : 0,
    crc: 0,
    compressed: 0,
    size: 0,
    offset,
  }
}

async function* oneEntry(entry: ArchiveEntry, written: Written): AsyncGenerator<Uint8Array> {
  const isLarge = entry.sizeBytes >= MAX32 - 1024 * 1024
  yield localHeader(written, isLarge)
  async function* plain(): AsyncGenerator<Uint8Array> {
    const source = entry.kind === 'symlink' ? [nameToBytes(entry.target)] : exactly(entry.content(), entry.sizeBytes)
    for await (const chunk of source) {
      written.crc = crc32(chunk, written.crc)
      written.size += chunk.length
      yield chunk
    }
  }
  if (entry.kind !== 'directory') {
    const packed =
      written.method === 8 ? pipeline(Readable.from(plain()), createDeflateRaw({ level: 4 }), () => {}) : plain()
    for await (const chunk of packed) {
      written.compressed += chunk.length
      yield chunk
    }
  }
  yield descriptor(written, isLarge)
}

function localHeader({ name, time, method }: Written, isLarge: boolean): Buffer {
  const header = Buffer.alloc(30)
  header.writeUInt32LE(0x04034b50, 0)
  header.writeUInt16LE(VERSION, 4)
  header.writeUInt16LE(HAS_DESCRIPTOR_AND_UTF8, 6)
  header.writeUInt16LE(method, 8)
  header.writeUInt32LE(time, 10)
  if (isLarge) header.writeUInt32LE(MAX32, 18)
  if (isLarge) header.writeUInt32LE(MAX32, 22)
  header.writeUInt16LE(name.length, 26)
  header.writeUInt16LE(isLarge ? 20 : 0, 28)
  return Buffer.concat([header, name, isLarge ? zip64Extra([0, 0]) : Buffer.alloc(0)])
}

function descriptor({ crc, compressed, size }: Written, isLarge: boolean): Buffer {
  const record = Buffer.alloc(isLarge ? 24 : 16)
  record.writeUInt32LE(0x08074b50, 0)
  record.writeUInt32LE(crc, 4)
  if (isLarge) {
    record.writeBigUInt64LE(BigInt(compressed), 8)
    record.writeBigUInt64LE(BigInt(size), 16)
  } else {
    record.writeUInt32LE(compressed, 8)
    record.writeUInt32LE(size, 12)
  }
  return record
}

function centralRecord({ entry, name, time, method, crc, compressed, size, offset }: Written): Buffer {
  const isLarge = compressed >= MAX32 || size >= MAX32 || offset >= MAX32
  const extra = isLarge ? zip64Extra([size, compressed, offset]) : Buffer.alloc(0)
  const record = Buffer.alloc(46)
  record.writeUInt32LE(0x02014b50, 0)
  record.writeUInt8(VERSION, 4)
  record.writeUInt8(UNIX, 5)
  record.writeUInt16LE(VERSION, 6)
  record.writeUInt16LE(HAS_DESCRIPTOR_AND_UTF8, 8)
  record.writeUInt16LE(method, 10)
  record.writeUInt32LE(time, 12)
  record.writeUInt32LE(crc, 16)
  record.writeUInt32LE(isLarge ? MAX32 : compressed, 20)
  record.writeUInt32LE(isLarge ? MAX32 : size, 24)
  record.writeUInt16LE(name.length, 28)
  record.writeUInt16LE(extra.length, 30)
  record.writeUInt32LE(
    (((FILE_TYPES[entry.kind] | entry.mode) << 16) | (entry.kind === 'directory' ? 0x10 : 0)) >>> 0,
    38,
  )
  record.writeUInt32LE(isLarge ? MAX32 : offset, 42)
  return Buffer.concat([record, name, extra])
}

function zip64Extra(values: number[]): Buffer {
  const extra = Buffer.alloc(4 + 8 * values.length)
  extra.writeUInt16LE(1, 0)
  extra.writeUInt16LE(8 * values.length, 2)
  for (const [index, value] of values.entries()) extra.writeBigUInt64LE(BigInt(value), 4 + 8 * index)
  return extra
}

function end(count: number, start: number, length: number): Buffer {
  const isLarge = count >= 0xffff || start >= MAX32 || length >= MAX32
  const record = Buffer.alloc(22)
  record.writeUInt32LE(0x06054b50, 0)
  record.writeUInt16LE(isLarge ? 0xffff : count, 8)
  record.writeUInt16LE(isLarge ? 0xffff : count, 10)
  record.writeUInt32LE(isLarge ? MAX32 : length, 12)
  record.writeUInt32LE(isLarge ? MAX32 : start, 16)
  return isLarge ? Buffer.concat([end64(count, start, length), record]) : record
}

function end64(count: number, start: number, length: number): Buffer {
  const record = Buffer.alloc(56 + 20)
  record.writeUInt32LE(0x06064b50, 0)
  record.writeBigUInt64LE(44n, 4)
  record.writeUInt16LE(VERSION, 12)
  record.writeUInt16LE(VERSION, 14)
  record.writeBigUInt64LE(BigInt(count), 24)
  record.writeBigUInt64LE(BigInt(count), 32)
  record.writeBigUInt64LE(BigInt(length), 40)
  record.writeBigUInt64LE(BigInt(start), 48)
  record.writeUInt32LE(0x07064b50, 56)
  record.writeBigUInt64LE(BigInt(start + length), 64)
  record.writeUInt32LE(1, 72)
  return record
}

function dosTime(date: Date): number {
  const year = Math.min(Math.max(date.getUTCFullYear(), 1980), 2107)
  const day = ((year - 1980) << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate()
  const time = (date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1)
  return ((day << 16) | time) >>> 0
}

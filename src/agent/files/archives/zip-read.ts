// Reads zip by its directory, which is what says where things are; and holds every entry to what the directory says of
// it: no overlaps, no other size, no other checksum.
import { createReadStream, read } from 'node:fs'
import { pipeline } from 'node:stream'
import { promisify } from 'node:util'
import { crc32, createInflateRaw } from 'node:zlib'
import type { OpenFile } from '../directory.ts'
import { nameFromBytes } from '../names.ts'
import { type ArchiveEntry, invalidArchive, nothing } from './entry.ts'

const END_BYTES = 22
const MAX_COMMENT_BYTES = 65_535
const MAX_DIRECTORY_BYTES = 256 * 1024 * 1024
const MAX32 = 0xffffffff
const MAX_TARGET_BYTES = 4096

const readAsync = promisify(read)

interface Central {
  name: Buffer
  flags: number
  method: number
  crc: number
  compressed: number
  size: number
  offset: number
  attributes: number
  isUnix: boolean
  time: number
}

export async function* readZip(file: OpenFile): AsyncGenerator<ArchiveEntry> {
  const { start, length } = await findDirectory(file)
  const entries = parseDirectory(await readAt(file, start, length))
  const byOffset = entries.toSorted((a, b) => a.offset - b.offset)
  let free = 0
  for (const entry of byOffset) {
    if (entry.flags & 1) throw invalidArchive('The archive is encrypted.')
    if (entry.method !== 0 && entry.method !== 8)
      throw invalidArchive('The archive uses a compression that is not known.')
    if (entry.offset < free) throw invalidArchive('Entries of the archive overlap.')
    const data = await dataStart(file, entry)
    free = data + entry.compressed
    if (free > start) throw invalidArchive('The archive is cut short.')
    yield await toEntry(file, entry, data)
  }
}

async function toEntry(file: OpenFile, entry: Central, data: number): Promise<ArchiveEntry> {
  const path = nameFromBytes(entry.name).replaceAll('\\', '/')
  const mode = entry.isUnix ? entry.attributes >>> 16 : 0
  const isLink = (mode & 0o170000) === 0o120000
  const isDirectory = path.endsWith('/') || (mode & 0o170000) === 0o040000
  const kind = isLink ? 'symlink' : isDirectory ? 'directory' : 'file'
  if (isLink && entry.size > MAX_TARGET_BYTES) throw invalidArchive('The archive holds a link of impossible length.')
  const content = () => inflate(file, entry, data)
  return {
    path: path.replace(/\/+$/, ''),
    kind,
    mode: mode & 0o7777 || (kind === 'directory' ? 0o755 : 0o644),
    modifiedAt: fromDosTime(entry.time),
    sizeBytes: kind === 'file' ? entry.size : 0,
    target: isLink ? nameFromBytes(Buffer.concat(await Array.fromAsync(content()))) : '',
    content: () => (kind === 'file' ? content() : nothing()),
  }
}

async function* inflate(file: OpenFile, entry: Central, data: number): AsyncGenerator<Uint8Array> {
  let size = 0
  let crc = 0
  if (entry.compressed > 0) {
    const range = { start: data, end: data + entry.compressed - 1 }
    const raw = createReadStream('', { fd: file.fd, autoClose: false, highWaterMark: 256 * 1024, ...range })
    for await (const chunk of entry.method === 8 ? pipeline(raw, createInflateRaw(), () => {}) : raw) {
      size += chunk.length
      if (size > entry.size) throw invalidArchive('An entry of the archive is larger than the archive says.')
      crc = crc32(chunk, crc)
      yield chunk
    }
  }
  if (size !== entry.size) throw invalidArchive('An entry of the archive is smaller than the archive says.')
  if (crc !== entry.crc) throw invalidArchive('An entry of the archive is damaged: its checksum is wrong.')
}

async function findDirectory(file: OpenFile): Promise<{ start: number; length: number }> {
  const total = Number(file.stats.size)
  const tailStart = Math.max(0, total - END_BYTES - MAX_COMMENT_BYTES)
  const tail = await readAt(file, tailStart, total - tailStart)
  const at = tail.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'))
  if (at === -1 || at + END_BYTES > tail.length) throw invalidArchive('The archive is cut short or is not a zip.')
  let length = tail.readUInt32LE(at + 12)
  let start = tail.readUInt32LE(at + 16)
  if (length === MAX32 || start === MAX32 || tail.readUInt16LE(at + 10) === 0xffff) {
    const wide = await findDirectory64(file, tailStart + at)
    if (wide) ({ start, length } = wide)
  }
  if (length > MAX_DIRECTORY_BYTES || start + length > total) throw invalidArchive('The archive is damaged.')
  return { start, length }
}

async function findDirectory64(file: OpenFile, end: number): Promise<{ start: number; length: number } | undefined> {
  if (end < 20) return undefined
  const locator = await readAt(file, end - 20, 20)
  if (locator.readUInt32LE(0) !== 0x07064b50) return undefined
  const record = await readAt(file, Number(locator.readBigUInt64LE(8)), 56)
  if (record.readUInt32LE(0) !== 0x06064b50) throw invalidArchive('The archive is damaged.')
  return { length: Number(record.readBigUInt64LE(40)), start: Number(record.readBigUInt64LE(48)) }
}

function parseDirectory(bytes: Buffer): Central[] {
  const entries: Central[] = []
  for (let at = 0; at < bytes.length; ) {
    if (at + 46 > bytes.length || bytes.readUInt32LE(at) !== 0x02014b50) break
    const nameEnd = at + 46 + bytes.readUInt16LE(at + 28)
    const extraEnd = nameEnd + bytes.readUInt16LE(at + 30)
    if (extraEnd > bytes.length) throw invalidArchive('The archive is damaged.')
    const entry: Central = {
      name: bytes.subarray(at + 46, nameEnd),
      flags: bytes.readUInt16LE(at + 8),
      method: bytes.readUInt16LE(at + 10),
      time: bytes.readUInt32LE(at + 12),
      crc: bytes.readUInt32LE(at + 16),
      compressed: bytes.readUInt32LE(at + 20),
      size: bytes.readUInt32LE(at + 24),
      attributes: bytes.readUInt32LE(at + 38),
      offset: bytes.readUInt32LE(at + 42),
      isUnix: bytes.readUInt8(at + 5) === 3,
    }
    widen(entry, bytes.subarray(nameEnd, extraEnd))
    entries.push(entry)
    at = extraEnd + bytes.readUInt16LE(at + 32)
  }
  return entries
}

/** Where a number did not fit, zip64 has it, in this order. */
function widen(entry: Central, extra: Buffer): void {
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== 1) continue
    let field = at + 4
    for (const key of ['size', 'compressed', 'offset'] as const) {
      if (entry[key] !== MAX32) continue
      if (field + 8 > extra.length) throw invalidArchive('The archive is damaged.')
      entry[key] = Number(extra.readBigUInt64LE(field))
      field += 8
    }
    return
  }
}

/** The local header must tell of the same thing, else two readers would see two archives. */
async function dataStart(file: OpenFile, entry: Central): Promise<number> {
  const header = await readAt(file, entry.offset, 30)
  if (header.readUInt32LE(0) !== 0x04034b50) throw invalidArchive('The archive is damaged.')
  const nameLength = header.readUInt16LE(26)
  const name = await readAt(file, entry.offset + 30, nameLength)
  if (!name.equals(entry.name)) throw invalidArchive('The archive gives two names to one entry.')
  return entry.offset + 30 + nameLength + header.readUInt16LE(28)
}

async function readAt(file: OpenFile, position: number, length: number): Promise<Buffer> {
  if (position < 0 || !Number.isSafeInteger(position) || position + length > Number(file.stats.size))
    throw invalidArchive('The archive is cut short.')
  const buffer = Buffer.alloc(length)
  for (let done = 0; done < length; ) {
    const { bytesRead } = await readAsync(file.fd, buffer, done, length - done, position + done)
    if (bytesRead === 0) throw invalidArchive('The archive is cut short.')
    done += bytesRead
  }
  return buffer
}

function fromDosTime(value: number): Date {
  const day = value >>> 16
  const time = value & 0xffff
  const date = [(day >> 9) + 1980, ((day >> 5) & 15) - 1, day & 31] as const
  return new Date(Date.UTC(...date, time >> 11, (time >> 5) & 63, (time & 31) * 2))
}

// Reads zip by its central directory, and checks every entry against it: no overlaps, no other size, no other checksum.
// The directory is read twice: all of it is checked before the first entry is returned.
import { crc32, createInflateRaw } from 'node:zlib'
import type { OpenFile } from '../sandbox/directory.ts'
import { nameFromBytes } from '../sandbox/names.ts'
import { type ArchiveEntry, entryName, invalidArchive, nothing } from './entry.ts'
import { bytesOf, inflated, type ReadOptions } from './source.ts'
import { findDirectory, readAt, recordsOf, type ZipRecord } from './zip-directory.ts'

const MAX_TARGET_BYTES = 4096
const HEADER_BYTES = 30
/** Small files lie close together: a round through the thread pool for each header would cost more than the rest of it. */
const HEADERS_READ_BYTES = 16 * 1024

export async function* readZip(file: OpenFile, options: ReadOptions): AsyncGenerator<ArchiveEntry> {
  const directory = await findDirectory(file)
  const starts = createStarts(directory.start)
  for await (const records of recordsOf(file, directory, options))
    for (const record of records) {
      checkRecord(record)
      starts.add(record.offset)
    }
  starts.seal()
  const readHeader = createHeaderReader(file)
  for await (const records of recordsOf(file, directory, options))
    for (const record of records) {
      options.signal.throwIfAborted()
      const data = dataStart(record, await readHeader(record.offset, HEADER_BYTES + record.name.length))
      if (data + record.compressed > starts.after(record.offset))
        throw invalidArchive('Entries of the archive overlap.')
      yield await toEntry(file, record, data, options)
    }
}

function checkRecord({ flags, method, name }: ZipRecord): void {
  if (flags & 1) throw invalidArchive('The archive is encrypted.')
  if (method !== 0 && method !== 8) throw invalidArchive('The archive uses a compression that is not known.')
  entryName(name)
}

/** Where entries begin: eight bytes for each, which is enough to see that none reaches into another. */
function createStarts(end: number) {
  let starts = new Float64Array(1024)
  let count = 0
  let isSorted = true
  /** Mostly the directory has the order of the archive, and the next start is the next one. */
  let last = -1

  function find(offset: number): number {
    let [low, high] = [0, count]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((starts[middle] ?? 0) < offset) low = middle + 1
      else high = middle
    }
    return low
  }

  return {
    add(offset: number): void {
      if (count === starts.length) {
        const larger = new Float64Array(2 * count)
        larger.set(starts)
        starts = larger
      }
      if (count > 0 && offset <= (starts[count - 1] ?? 0)) isSorted = false
      starts[count++] = offset
    },
    seal(): void {
      starts = starts.subarray(0, count)
      if (isSorted) return
      starts.sort()
      for (let at = 1; at < count; at++)
        if (starts[at] === starts[at - 1]) throw invalidArchive('Entries of the archive overlap.')
    },
    /** Up to where the entry that begins at `offset` may reach. */
    after(offset: number): number {
      last = starts[last + 1] === offset ? last + 1 : find(offset)
      return last + 1 < count ? (starts[last + 1] ?? end) : end
    },
  }
}

async function toEntry(file: OpenFile, record: ZipRecord, data: number, options: ReadOptions): Promise<ArchiveEntry> {
  const { path, isDirectory: endsInSlash } = entryName(withSlashes(record.name))
  const mode = record.isUnix ? record.attributes >>> 16 : 0
  const isLink = (mode & 0o170000) === 0o120000
  const kind = isLink ? 'symlink' : endsInSlash || (mode & 0o170000) === 0o040000 ? 'directory' : 'file'
  if (isLink && record.size > MAX_TARGET_BYTES) throw invalidArchive('The archive holds a link of impossible length.')
  const content = () => contentOf(file, record, data, options)
  return {
    path,
    kind,
    mode: mode & 0o7777 || (kind === 'directory' ? 0o755 : 0o644),
    modifiedAt: fromDosTime(record.time),
    sizeBytes: kind === 'file' ? record.size : 0,
    target: isLink ? nameFromBytes(Buffer.concat(await Array.fromAsync(content()))) : '',
    content: () => (kind === 'file' ? content() : nothing()),
  }
}

/** Some tools of Windows write backslashes, which no character of UTF-8 has in it. */
function withSlashes(name: Buffer): Buffer {
  return name.includes(0x5c) ? Buffer.from(name.map((byte) => (byte === 0x5c ? 0x2f : byte))) : name
}

async function* contentOf(
  file: OpenFile,
  record: ZipRecord,
  data: number,
  options: ReadOptions,
): AsyncGenerator<Uint8Array> {
  let size = 0
  let crc = 0
  const raw = bytesOf(file, data, data + record.compressed, options)
  const inflater = record.method === 8 && record.compressed > 0 ? createInflateRaw() : undefined
  for await (const chunk of inflated(raw, inflater, options)) {
    size += chunk.length
    if (size > record.size) throw invalidArchive('An entry of the archive is larger than the archive says.')
    crc = crc32(chunk, crc)
    yield chunk
  }
  if (size !== record.size) throw invalidArchive('An entry of the archive is smaller than the archive says.')
  if (crc !== record.crc) throw invalidArchive('An entry of the archive is damaged: its checksum is wrong.')
}

/** Reads ahead: mostly the next header is in what was read with the one before it. */
function createHeaderReader(file: OpenFile) {
  const total = Number(file.stats.size)
  let start = 0
  let ahead: Buffer = Buffer.alloc(0)
  return async (offset: number, length: number): Promise<Buffer> => {
    if (offset < start || offset + length > start + ahead.length) {
      ahead = await readAt(file, offset, Math.max(length, Math.min(HEADERS_READ_BYTES, total - offset)))
      start = offset
    }
    return ahead.subarray(offset - start, offset - start + length)
  }
}

/** The local header must tell of the same thing, else two readers would see two archives. */
function dataStart({ name, offset }: ZipRecord, header: Buffer): number {
  if (header.readUInt32LE(0) !== 0x04034b50) throw invalidArchive('The archive is damaged.')
  if (header.readUInt16LE(26) !== name.length || !header.subarray(HEADER_BYTES).equals(name))
    throw invalidArchive('The archive gives two names to one entry.')
  return offset + HEADER_BYTES + name.length + header.readUInt16LE(28)
}

function fromDosTime(value: number): Date {
  const day = value >>> 16
  const time = value & 0xffff
  const date = [(day >> 9) + 1980, ((day >> 5) & 15) - 1, day & 31] as const
  return new Date(Date.UTC(...date, time >> 11, (time >> 5) & 63, (time & 31) * 2))
}

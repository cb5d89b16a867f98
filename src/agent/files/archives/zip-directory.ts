// The central directory at the end of a zip. It may be as large as an archive: it is read in steps, parsed in turns of the
// event loop, and only one number is kept per entry.
import { ARCHIVE_MAX_ENTRIES, ZIP_DIRECTORY_MAX_BYTES } from '../../../contract/fixed-limits.ts'
import type { OpenFile } from '../sandbox/directory.ts'
import { invalidArchive } from './entry.ts'
import type { ReadOptions } from './source.ts'

const END_BYTES = 22
const MAX_COMMENT_BYTES = 65_535
const RECORD_BYTES = 46
/** A record holds three texts of at most 64 KiB, so at least one whole record is in every step. */
const STEP_BYTES = 256 * 1024
/** Parsed without a turn in between: a fraction of a millisecond. */
const RECORDS_AT_ONCE = 64
const MAX16 = 0xffff
const MAX32 = 0xffffffff

export interface ZipRecord {
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

export interface ZipDirectory {
  start: number
  length: number
  /** Undefined where the archive does not say. */
  count: number | undefined
}

export async function findDirectory(file: OpenFile): Promise<ZipDirectory> {
  const total = Number(file.stats.size)
  const tailStart = Math.max(0, total - END_BYTES - MAX_COMMENT_BYTES)
  const tail = await readAt(file, tailStart, total - tailStart)
  const at = tail.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'))
  if (at === -1 || at + END_BYTES > tail.length) throw invalidArchive('The archive is cut short or is not a zip.')
  let directory: ZipDirectory = {
    count: tail.readUInt16LE(at + 10),
    length: tail.readUInt32LE(at + 12),
    start: tail.readUInt32LE(at + 16),
  }
  if (directory.length === MAX32 || directory.start === MAX32 || directory.count === MAX16)
    directory = (await findDirectory64(file, tailStart + at)) ?? { ...directory, count: undefined }
  const { start, length, count = 0 } = directory
  if (start + length > total) throw invalidArchive('The archive is damaged.')
  if (length > ZIP_DIRECTORY_MAX_BYTES || count > ARCHIVE_MAX_ENTRIES)
    throw invalidArchive('The archive holds too many entries.')
  return directory
}

async function findDirectory64(file: OpenFile, end: number): Promise<ZipDirectory | undefined> {
  if (end < 20) return undefined
  const locator = await readAt(file, end - 20, 20)
  if (locator.readUInt32LE(0) !== 0x07064b50) return undefined
  const record = await readAt(file, Number(locator.readBigUInt64LE(8)), 56)
  if (record.readUInt32LE(0) !== 0x06064b50) throw invalidArchive('The archive is damaged.')
  const number = (at: number) => Number(record.readBigUInt64LE(at))
  return { count: number(32), length: number(40), start: number(48) }
}

/** In the order of the directory. */
export async function* recordsOf(
  file: OpenFile,
  { start, length, count }: ZipDirectory,
  { signal, turn }: Pick<ReadOptions, 'signal' | 'turn'>,
): AsyncGenerator<ZipRecord[]> {
  const end = start + length
  let found = 0
  for (let at = start, isLast = false; at < end && !isLast; ) {
    signal.throwIfAborted()
    const bytes = await readAt(file, at, Math.min(STEP_BYTES, end - at))
    const isEnd = at + bytes.length === end
    let parsed = 0
    for (let group = parseRecords(bytes, 0, isEnd); group.records.length > 0; ) {
      parsed = group.end
      found += group.records.length
      if (found > ARCHIVE_MAX_ENTRIES) throw invalidArchive('The archive holds too many entries.')
      yield group.records
      if (turn.due()) await turn.take()
      group = parseRecords(bytes, parsed, isEnd)
    }
    at += parsed
    isLast = isEnd || parsed === 0
  }
  // What a directory that was cut would leave out must not be taken for an archive without it.
  if (count !== undefined && found % (MAX16 + 1) !== count % (MAX16 + 1))
    throw invalidArchive('The archive is damaged.')
}

/** The next few whole ones, and where they end. Something else than a record ends the directory. */
function parseRecords(bytes: Buffer, start: number, isEnd: boolean): { records: ZipRecord[]; end: number } {
  const records: ZipRecord[] = []
  let at = start
  while (
    records.length < RECORDS_AT_ONCE &&
    at + RECORD_BYTES <= bytes.length &&
    bytes.readUInt32LE(at) === 0x02014b50
  ) {
    const nameEnd = at + RECORD_BYTES + bytes.readUInt16LE(at + 28)
    const extraEnd = nameEnd + bytes.readUInt16LE(at + 30)
    const next = extraEnd + bytes.readUInt16LE(at + 32)
    if (next > bytes.length) {
      if (isEnd) throw invalidArchive('The archive is damaged.')
      break
    }
    records.push(parseRecord(bytes, at, nameEnd, extraEnd))
    at = next
  }
  return { records, end: at }
}

function parseRecord(bytes: Buffer, at: number, nameEnd: number, extraEnd: number): ZipRecord {
  const record: ZipRecord = {
    name: bytes.subarray(at + RECORD_BYTES, nameEnd),
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
  widen(record, bytes.subarray(nameEnd, extraEnd))
  return record
}

/** Where a number did not fit, zip64 has it, in this order. */
function widen(record: ZipRecord, extra: Buffer): void {
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== 1) continue
    let field = at + 4
    for (const key of ['size', 'compressed', 'offset'] as const) {
      if (record[key] !== MAX32) continue
      if (field + 8 > extra.length) throw invalidArchive('The archive is damaged.')
      record[key] = Number(extra.readBigUInt64LE(field))
      field += 8
    }
    return
  }
}

export async function readAt(file: OpenFile, position: number, length: number): Promise<Buffer> {
  if (position < 0 || !Number.isSafeInteger(position) || position + length > Number(file.stats.size))
    throw invalidArchive('The archive is cut short.')
  const buffer = Buffer.allocUnsafeSlow(length)
  for (let done = 0; done < length; ) {
    const bytes = await file.read(buffer, done, length - done, position + done)
    if (bytes === 0) throw invalidArchive('The archive is cut short.')
    done += bytes
  }
  return buffer
}

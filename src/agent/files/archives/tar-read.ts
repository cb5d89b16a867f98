// Reads tar as it streams by: ustar, pax and the long names of GNU tar. Anything that a file manager should not make
// (devices, FIFOs, hard links) or that does not add up is refused.
import { asBuffer } from '../../../kit/bytes.ts'
import { nameFromBytes } from '../names.ts'
import { type ArchiveEntry, invalidArchive, nothing } from './entry.ts'

const BLOCK = 512
const MAX_RECORD_BYTES = 1024 * 1024

export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<ArchiveEntry> {
  const reader = createReader(source)
  let overrides = new Map<string, Buffer>()
  for (let isFirst = true; ; isFirst = false) {
    const block = await reader.take(BLOCK)
    if (block === undefined && !isFirst) throw invalidArchive('The archive is cut short.')
    if (block === undefined) throw invalidArchive('The archive is empty.')
    if (block.every((byte) => byte === 0)) return
    const header = parseHeader(block)
    if (header.type === 'x' || header.type === 'L' || header.type === 'K') {
      const body = await takeRecord(reader, header.size)
      if (header.type === 'x') for (const [key, value] of parsePax(body)) overrides.set(key, value)
      else overrides.set(header.type === 'L' ? 'path' : 'linkpath', untilNul(body))
      continue
    }
    if (header.type === 'g') {
      await takeRecord(reader, header.size)
      continue
    }
    yield* oneEntry(reader, header, overrides)
    overrides = new Map()
  }
}

async function* oneEntry(reader: Reader, header: Header, overrides: Map<string, Buffer>): AsyncGenerator<ArchiveEntry> {
  const kind = kindOf(header.type)
  const declared = overrides.get('size')
  const size = declared ? Number(declared.toString()) : header.size
  if (!Number.isSafeInteger(size) || size < 0) throw invalidArchive('The archive holds an impossible size.')
  const path = nameFromBytes(overrides.get('path') ?? header.path)
  const left = { bytes: size }
  yield {
    path: path.replace(/\/+$/, ''),
    kind: kind === 'file' && path.endsWith('/') ? 'directory' : kind,
    mode: header.mode,
    modifiedAt: new Date(header.seconds * 1000),
    sizeBytes: kind === 'file' ? size : 0,
    target: kind === 'symlink' ? nameFromBytes(overrides.get('linkpath') ?? header.target) : '',
    content: () => (kind === 'file' ? reader.stream(left) : nothing()),
  }
  for await (const _ of reader.stream(left));
  const padding = (BLOCK - (size % BLOCK)) % BLOCK
  if (padding > 0 && (await reader.take(padding)) === undefined) throw invalidArchive('The archive is cut short.')
}

function kindOf(type: string): ArchiveEntry['kind'] {
  if (type === '0' || type === '\0' || type === '7') return 'file'
  if (type === '5') return 'directory'
  if (type === '2') return 'symlink'
  throw invalidArchive('The archive holds a hard link, a device or another thing that is not unpacked.')
}

interface Header {
  path: Buffer
  target: Buffer
  size: number
  mode: number
  seconds: number
  type: string
}

function parseHeader(block: Buffer): Header {
  let sum = 8 * 32
  for (const [index, byte] of block.entries()) if (index < 148 || index >= 156) sum += byte
  if (sum !== octal(block.subarray(148, 156))) throw invalidArchive('The archive is damaged: a checksum is wrong.')
  const name = untilNul(block.subarray(0, 100))
  const isPosix = block.toString('latin1', 257, 263) === 'ustar\0'
  const prefix = isPosix ? untilNul(block.subarray(345, 500)) : Buffer.alloc(0)
  return {
    path: prefix.length > 0 ? Buffer.concat([prefix, Buffer.from('/'), name]) : name,
    target: untilNul(block.subarray(157, 257)),
    size: number(block.subarray(124, 136)),
    mode: octal(block.subarray(100, 108)) & 0o7777,
    seconds: number(block.subarray(136, 148)),
    type: String.fromCharCode(block[156] ?? 0),
  }
}

/** Octal digits or, for what is too large for them, GNU's base 256. */
function number(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) === 0) return octal(field)
  const value = BigInt(`0x${Buffer.concat([Buffer.of((field[0] ?? 0) & 0x7f), field.subarray(1)]).toString('hex')}`)
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw invalidArchive('The archive holds an impossible number.')
  return Number(value)
}

function octal(field: Buffer): number {
  const text = untilNul(field).toString('latin1').trim()
  if (!/^[0-7]*$/.test(text)) throw invalidArchive('The archive is damaged: a number is not a number.')
  return text === '' ? 0 : Number.parseInt(text, 8)
}

function untilNul(bytes: Buffer): Buffer {
  const end = bytes.indexOf(0)
  return end === -1 ? bytes : bytes.subarray(0, end)
}

function parsePax(body: Buffer): Map<string, Buffer> {
  const records = new Map<string, Buffer>()
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at)
    const length = Number(body.toString('latin1', at, space))
    const equals = body.indexOf(0x3d, space)
    if (space === -1 || equals === -1 || !(length > 0) || at + length > body.length || equals >= at + length)
      throw invalidArchive('The archive is damaged: a record is malformed.')
    records.set(body.toString('utf8', space + 1, equals), body.subarray(equals + 1, at + length - 1))
    at += length
  }
  return records
}

async function takeRecord(reader: Reader, size: number): Promise<Buffer> {
  if (size > MAX_RECORD_BYTES) throw invalidArchive('The archive holds a name of impossible length.')
  const body = await reader.take(Math.ceil(size / BLOCK) * BLOCK)
  if (body === undefined) throw invalidArchive('The archive is cut short.')
  return body.subarray(0, size)
}

interface Reader {
  /** Undefined when the source ends before. */
  take(length: number): Promise<Buffer | undefined>
  stream(left: { bytes: number }): AsyncGenerator<Uint8Array>
}

function createReader(source: AsyncIterable<Uint8Array>): Reader {
  const iterator = source[Symbol.asyncIterator]()
  let buffered: Buffer = Buffer.alloc(0)

  async function fill(): Promise<boolean> {
    const { done, value } = await iterator.next()
    if (done) return false
    buffered = buffered.length === 0 ? asBuffer(value) : Buffer.concat([buffered, value])
    return true
  }

  return {
    async take(length) {
      while (buffered.length < length) if (!(await fill())) return undefined
      const taken = buffered.subarray(0, length)
      buffered = buffered.subarray(length)
      return taken
    },
    async *stream(left) {
      while (left.bytes > 0) {
        if (buffered.length === 0 && !(await fill())) throw invalidArchive('The archive is cut short.')
        const part = buffered.subarray(0, Math.min(left.bytes, buffered.length))
        buffered = buffered.subarray(part.length)
        left.bytes -= part.length
        yield part
      }
    },
  }
}

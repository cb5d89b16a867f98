// Reads tar as it streams by: ustar, pax and the long names of GNU tar. Anything that a file manager should not make
// (devices, FIFOs, hard links) or that does not add up is refused.
import { nameFromBytes } from '../sandbox/names.ts'
import { type ArchiveEntry, entryName, invalidArchive, nothing } from './entry.ts'
import { createTarReader, type TarReader } from './tar-blocks.ts'
import { createExtended, isExtended, type Overrides, untilNul } from './tar-extended.ts'

const BLOCK = 512
const ZEROS = Buffer.alloc(BLOCK)

/** `source` is ended when the entries are, also early. */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<ArchiveEntry> {
  await using reader = createTarReader(source)
  let extended = createExtended()
  for (let isFirst = true; ; isFirst = false) {
    const block = await reader.take(BLOCK)
    if (block === undefined) throw invalidArchive(isFirst ? 'The archive is empty.' : 'The archive is cut short.')
    if (block.equals(ZEROS)) return
    const header = parseHeader(block)
    if (isExtended(header.type)) {
      await extended.take(reader, header.type, header.size)
      continue
    }
    yield* oneEntry(reader, header, extended.overrides)
    extended = createExtended()
  }
}

async function* oneEntry(reader: TarReader, header: Header, overrides: Overrides): AsyncGenerator<ArchiveEntry> {
  const kind = kindOf(header.type)
  const size = overrides.size ? decimal(overrides.size) : header.size
  const { path, isDirectory } = entryName(overrides.path ?? header.path)
  const left = { bytes: size }
  yield {
    path,
    kind: kind === 'file' && isDirectory ? 'directory' : kind,
    mode: header.mode,
    modifiedAt: new Date(header.seconds * 1000),
    sizeBytes: kind === 'file' ? size : 0,
    target: kind === 'symlink' ? nameFromBytes(overrides.linkpath ?? header.target) : '',
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
  for (let at = 0; at < BLOCK; at++) if (at < 148 || at >= 156) sum += block[at] ?? 0
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

function decimal(field: Buffer): number {
  const text = field.toString('latin1')
  const value = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) throw invalidArchive('The archive holds an impossible size.')
  return value
}

function octal(field: Buffer): number {
  const text = untilNul(field).toString('latin1').trim()
  if (!/^[0-7]*$/.test(text)) throw invalidArchive('The archive is damaged: a number is not a number.')
  return text === '' ? 0 : Number.parseInt(text, 8)
}

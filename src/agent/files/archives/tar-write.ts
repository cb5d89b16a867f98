// Writes POSIX tar: ustar headers, with pax records for what does not fit them.
import { nameToBytes } from '../sandbox/names.ts'
import { type ArchiveEntry, exactly } from './entry.ts'

const BLOCK = 512
const MAX_OCTAL_SIZE = 0o77777777777
const TYPES = { file: '0', directory: '5', symlink: '2' } as const

export async function* writeTar(entries: AsyncIterable<ArchiveEntry>): AsyncGenerator<Uint8Array> {
  for await (const entry of entries) {
    yield headers(entry)
    if (entry.kind !== 'file' || entry.sizeBytes === 0) continue
    yield* exactly(entry.content(), entry.sizeBytes)
    const padding = (BLOCK - (entry.sizeBytes % BLOCK)) % BLOCK
    if (padding > 0) yield Buffer.alloc(padding)
  }
  yield Buffer.alloc(2 * BLOCK)
}

function headers(entry: ArchiveEntry): Uint8Array {
  const path = nameToBytes(entry.kind === 'directory' ? `${entry.path}/` : entry.path)
  const target = nameToBytes(entry.target)
  const size = entry.kind === 'file' ? entry.sizeBytes : 0
  const records: Buffer[] = []
  if (path.length > 100) records.push(paxRecord('path', path))
  if (target.length > 100) records.push(paxRecord('linkpath', target))
  if (size > MAX_OCTAL_SIZE) records.push(paxRecord('size', Buffer.from(String(size))))
  const seconds = Math.max(0, Math.floor(entry.modifiedAt.getTime() / 1000))
  const main = header({
    path,
    target,
    size: Math.min(size, MAX_OCTAL_SIZE),
    mode: entry.mode,
    seconds,
    type: TYPES[entry.kind],
  })
  if (records.length === 0) return main
  const body = Buffer.concat(records)
  const name = Buffer.from('PaxHeader')
  const pax = header({ path: name, target: Buffer.alloc(0), size: body.length, mode: 0o644, seconds, type: 'x' })
  return Buffer.concat([pax, body, Buffer.alloc((BLOCK - (body.length % BLOCK)) % BLOCK), main])
}

interface HeaderFields {
  path: Buffer
  target: Buffer
  size: number
  mode: number
  seconds: number
  type: string
}

function header({ path, target, size, mode, seconds, type }: HeaderFields): Buffer {
  const block = Buffer.alloc(BLOCK)
  const octal = (value: number, at: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
  path.copy(block, 0, 0, 100)
  octal(mode & 0o7777, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(size, 124, 12)
  octal(Math.min(seconds, MAX_OCTAL_SIZE), 136, 12)
  block.write(' '.repeat(8), 148, 'latin1')
  block.write(type, 156, 'latin1')
  target.copy(block, 157, 0, 100)
  block.write('ustar\x0000', 257, 'latin1')
  let sum = 0
  for (const byte of block) sum += byte
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return block
}

/** `<length> <key>=<value>\n`, the length counting itself. */
function paxRecord(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')])
  let length = rest.length + 1
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}

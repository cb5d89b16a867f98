// The prints of large files outlive their process: they are written when the store is closed, and read by the first backup
// after that. What is missing here or damaged costs that backup time and nothing else; so nothing is synced, and a process
// that is killed leaves what the one before it has left. See docs/decisions/0005-prints.md.
import { randomBytes } from 'node:crypto'
import { renameSync, rmSync } from 'node:fs'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import { readFully } from '../../../kit/files/read-fully.ts'
import { writeFully } from '../../../kit/files/write-fully.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import type { KeptPrints, NamedPrints } from '../blocks/block-prints.ts'
import { createGmac, GMAC_BYTES, GMAC_KEY_BYTES, type Gmac } from '../format/gmac.ts'
import { OPEN_FILE } from '../tree/unchanged.ts'

const MAGIC = Buffer.from('gamekeeper prints 1\n')
const KEY_END = MAGIC.length + GMAC_KEY_BYTES
const HEADER_BYTES = KEY_END + GMAC_BYTES
/** The lengths of a name, its prints and its ids, in 32 bits each. */
const LENGTHS_BYTES = 12
/** A name is a path of a server; the rest is what one file may have at most. */
const RECORD_BYTES_MAX = 64 * 1024 * 1024
const SHARE = 'prints'

export interface PrintFile extends KeptPrints {
  /** Of all prints: that of those in the file, or a new one where there are none. */
  readonly key: Uint8Array
}

export function openPrintFile(path: string): PrintFile {
  const draft = `${path}.new`
  // Of a process that was killed while it wrote.
  removeIfPossible(draft)
  const found = readKey(path)
  const key = found ?? randomBytes(GMAC_KEY_BYTES)
  const gmac = createGmac(key)
  return {
    key,
    /** In the order in which they were written, up to the first that is damaged. */
    async *read() {
      using file = found ? openIfThere(path) : undefined
      if (!file) return
      const turn = createTurns(SHARE)
      for (let at = HEADER_BYTES; ; ) {
        if (turn.due()) await turn.take()
        const record = readRecord(file, at, gmac)
        if (!record) return
        at = record.end
        yield record.named
      }
    },
    async write(all) {
      try {
        removeIfPossible(draft)
        await writeAll(draft, key, gmac, all)
        renameSync(draft, path)
      } catch {
        removeIfPossible(draft)
      }
    },
    drop: () => rmSync(path, { force: true }),
  }
}

/** Where it cannot be, nothing is kept. */
function removeIfPossible(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {}
}

function readKey(path: string): Buffer | undefined {
  using file = openIfThere(path)
  const header = file && readBytes(file, 0, HEADER_BYTES)
  if (!header?.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  const key = header.subarray(MAGIC.length, KEY_END)
  return createGmac(key)(header.subarray(0, KEY_END)).equals(header.subarray(KEY_END)) ? key : undefined
}

async function writeAll(path: string, key: Uint8Array, gmac: Gmac, all: Iterable<NamedPrints>): Promise<void> {
  const turn = createTurns(SHARE)
  using file = openDescriptor(path, 'wx', 0o600)
  const header = Buffer.concat([MAGIC, key])
  writeFully(file.fd, Buffer.concat([header, gmac(header)]))
  for (const [name, { prints, ids }] of all) {
    if (turn.due()) await turn.take()
    const nameBytes = Buffer.from(name)
    const record = Buffer.concat([Buffer.alloc(LENGTHS_BYTES), nameBytes, prints, ids])
    for (const [index, { length }] of [nameBytes, prints, ids].entries()) record.writeUInt32LE(length, 4 * index)
    writeFully(file.fd, Buffer.concat([record, gmac(record)]))
  }
}

function readRecord(file: Descriptor, at: number, gmac: Gmac): { named: NamedPrints; end: number } | undefined {
  const lengths = readBytes(file, at, LENGTHS_BYTES)
  if (!lengths) return undefined
  const printsAt = LENGTHS_BYTES + lengths.readUInt32LE(0)
  const idsAt = printsAt + lengths.readUInt32LE(4)
  const length = idsAt + lengths.readUInt32LE(8)
  const record = length <= RECORD_BYTES_MAX ? readBytes(file, at, length + GMAC_BYTES) : undefined
  if (!record || !gmac(record.subarray(0, length)).equals(record.subarray(length))) return undefined
  const name = record.toString('utf8', LENGTHS_BYTES, printsAt)
  const prints = { prints: copyOf(record, printsAt, idsAt), ids: copyOf(record, idsAt, length) }
  return { named: [name, prints], end: at + length + GMAC_BYTES }
}

/** No Buffer, of which a slice is a view. */
const copyOf = (record: Buffer, from: number, to: number) => new Uint8Array(record.subarray(from, to))

/** Undefined where there are fewer, or the disk does not give them. */
function readBytes(file: Descriptor, at: number, length: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(length)
  try {
    return readFully(file.fd, bytes, length, at) === length ? bytes : undefined
  } catch {
    return undefined
  }
}

/** Never waits, and follows no link. */
function openIfThere(path: string): Descriptor | undefined {
  try {
    return openDescriptor(path, OPEN_FILE)
  } catch {
    return undefined
  }
}

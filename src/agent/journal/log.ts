// Where the journal lies on disk: two files of a fixed size, written in turns, one line a record. Their bytes are
// allocated before they are needed, so a full disk does not keep a change from being written down, and a sync has only
// data to write. A line carries a checksum and the generation of its file: what a crash tore, and what an earlier
// generation left behind, is told apart from what counts.
import {
  closeSync,
  constants,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { crc32 } from 'node:zlib'
import { hasCode } from '../../kit/errno.ts'

const NAMES = ['0.log', '1.log'] as const
const ALLOCATED_BYTES = 512 * 1024
const fdatasyncAsync = promisify(fdatasync)

export interface Log {
  /** On disk after the next `sync`; kept by the kernel, also if this process is killed, once this returns. */
  append(record: object): void
  /** Everything that was appended before the call is on disk once this resolves. Callers at the same time share one sync. */
  sync(): Promise<void>
  close(): void
}

/** `live` answers the records that still matter: a new generation begins with them. */
export function openLog(folder: string, replay: (record: object) => void, live: () => Iterable<object>): Log {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const fds = NAMES.map((name) => allocate(join(folder, name)))
  for (const path of [folder, dirname(folder)]) syncFolder(path)
  const [older, newest] = readGenerations(folder)
  // The disk may have taken a part of what the newest begins with: all of it is in the one before it, too.
  const counting = newest.isComplete ? [newest] : [older, newest]
  for (const { records } of counting) records.forEach(replay)
  // Only a generation that nothing hangs on is overwritten by the next.
  let generation = newest.isComplete ? newest.number : newest.number + 1
  let current = generation % 2
  let position = 0
  let capacity = ALLOCATED_BYTES
  let isClosed = false
  let syncing: Promise<void> | undefined
  let following: Promise<void> | undefined

  const fd = () => fds[current] as number
  begin()

  /** The generation before stays whole until the one that replaces it is on disk. */
  function begin(): void {
    if (generation > 0) fdatasyncSync(fd())
    const next = generation + 1
    let end = 0
    let records = 0
    const write = (record: object) => {
      end += writeAt(fds[next % 2] as number, lineOf(next, record), end)
    }
    for (const record of live()) {
      write(record)
      records++
    }
    write({ begunWith: records } satisfies Begun)
    generation = next
    current = next % 2
    position = end
  }

  function makeRoom(bytes: number): void {
    if (position + bytes <= capacity) return
    begin()
    if (position + bytes > capacity / 2) capacity = 2 * (position + bytes)
  }

  async function syncOnce(): Promise<void> {
    try {
      await fdatasyncAsync(fd())
    } finally {
      syncing = undefined
    }
  }

  return {
    append(record) {
      if (isClosed) throw new Error('the journal is closed')
      makeRoom(lineOf(generation, record).length)
      position += writeAt(fd(), lineOf(generation, record), position)
    },
    sync() {
      if (!syncing) {
        syncing = syncOnce()
        return syncing
      }
      following ??= syncing
        .catch(() => {})
        .then(() => {
          following = undefined
          syncing = syncOnce()
          return syncing
        })
      return following
    },
    close() {
      if (isClosed) return
      isClosed = true
      const close = () => fds.forEach(closeSync)
      if (syncing) void Promise.allSettled([syncing, following]).then(close)
      else close()
    },
  }
}

/** Where there is no room for it, the file grows as far as it can when it has to. */
function allocate(path: string): number {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  const { size } = fstatSync(fd)
  try {
    if (size < ALLOCATED_BYTES) writeAt(fd, Buffer.alloc(ALLOCATED_BYTES - size), size)
    fsyncSync(fd)
  } catch (error) {
    if (!hasCode(error, 'ENOSPC', 'EDQUOT')) throw error
  }
  return fd
}

function syncFolder(path: string): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function writeAt(fd: number, bytes: Buffer, position: number): number {
  let written = 0
  while (written < bytes.length) written += writeSync(fd, bytes, written, bytes.length - written, position + written)
  return written
}

function lineOf(generation: number, record: object): Buffer {
  const text = `${generation} ${JSON.stringify(record)}`
  return Buffer.from(`${checksum(Buffer.from(text))} ${text}\n`)
}

const checksum = (bytes: Buffer) => crc32(bytes).toString(16).padStart(8, '0')

/** Ends what a generation begins with, and says how many records that is: pages reach the disk in any order. */
interface Begun {
  begunWith: number
}

interface Generation {
  number: number
  /** Whether everything that it began with is there. */
  isComplete: boolean
  records: object[]
}

function readGenerations(folder: string): [older: Generation, newest: Generation] {
  const [a, b] = NAMES.map((name) => readGeneration(join(folder, name))) as [Generation, Generation]
  return a.number < b.number ? [a, b] : [b, a]
}

/** The newest one in the file; number 0 where there is none. */
function readGeneration(path: string): Generation {
  let newest: Generation = { number: 0, isComplete: true, records: [] }
  for (const { generation, record } of linesOf(readFileSync(path))) {
    if (generation < newest.number) continue
    if (generation > newest.number) newest = { number: generation, isComplete: false, records: [] }
    if ('begunWith' in record) newest.isComplete = newest.records.length === record.begunWith
    else newest.records.push(record)
  }
  return newest
}

function* linesOf(bytes: Buffer): Generator<{ generation: number; record: object }> {
  for (let start = 0, end = bytes.indexOf(10); end >= 0; start = end + 1, end = bytes.indexOf(10, start)) {
    const line = bytes.subarray(start, end)
    const text = line.subarray(9)
    if (line.subarray(0, 8).toString('latin1') !== checksum(text)) continue
    const space = text.indexOf(32)
    yield {
      generation: Number(text.subarray(0, space).toString('latin1')),
      record: JSON.parse(text.subarray(space + 1).toString()) as object,
    }
  }
}

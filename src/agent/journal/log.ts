// Where the journal lies on disk: two files of a fixed size, written in turns, one line a record. Their bytes are
// allocated before they are needed, so a full disk does not keep a change from being written down, and a sync has only
// data to write. A line carries a checksum and the generation of its file: what a crash tore, and what an earlier
// generation left behind, is told apart from what counts. A file that was damaged otherwise is reported and kept.
import {
  constants,
  copyFileSync,
  existsSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  readFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { crc32 } from 'node:zlib'
import { type Descriptor, openDescriptor } from '../../kit/files/descriptor.ts'
import { syncFolder } from '../../kit/files/durable-record.ts'
import { hasCode } from '../../kit/files/errno.ts'
import { createSharedSync } from '../../kit/files/shared-sync.ts'
import { StartFault } from '../../kit/start-fault.ts'

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

export interface LogOptions {
  folder: string
  replay: (record: object) => void
  /** The records that still matter: a new generation begins with them. */
  live: () => Iterable<object>
  /** Records that were on disk may be lost. */
  onDamage: (error: Error) => void
}

export function openLog(options: LogOptions): Log {
  try {
    return open(options)
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (syscall === undefined) throw error
    throw new StartFault(`The journal in ${options.folder} cannot be used (${code}).`, { cause: error })
  }
}

function open({ folder, replay, live, onDamage }: LogOptions): Log {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const paths = NAMES.map((name) => join(folder, name))
  const found = paths.map(readIfThere)
  const contents = readContents(found)
  for (const [index, damage] of damagesOf(found, contents).entries())
    if (damage) onDamage(new Error(`the journal ${paths[index]} ${damage}; ${keepAside(paths[index] as string)}`))
  const files = paths.map(allocate)
  for (const path of [folder, dirname(folder)]) syncFolder(path)
  for (const record of contents.records) replay(record)
  let generation = contents.number
  /** No number is used twice: what a beginning that failed has left would count with the next. */
  let highest = contents.highest
  let current = generation % 2
  let position = 0
  let capacity = ALLOCATED_BYTES
  let isClosed = false
  const syncs = createSharedSync(() => file(current).use(fdatasyncAsync))

  const file = (index: number) => files[index] as Descriptor
  begin()

  /** The generation before stays whole until the one that replaces it is on disk. */
  function begin(): void {
    if (generation > 0) fdatasyncSync(file(current).fd)
    // Never into the file that has what counts, be it damaged.
    const counting = generation || highest
    const next = highest + ((highest + 1) % 2 === counting % 2 ? 2 : 1)
    highest = next
    let end = 0
    let records = 0
    const write = (record: object) => {
      end += writeAt(file(next % 2), lineOf(next, record), end)
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

  return {
    append(record) {
      if (isClosed) throw new Error('the journal is closed')
      makeRoom(lineOf(generation, record).length)
      position += writeAt(file(current), lineOf(generation, record), position)
    },
    sync: syncs.sync,
    close() {
      if (isClosed) return
      isClosed = true
      // One that is asked for may have to begin yet.
      syncs.whenEnded(() => {
        for (const opened of files) opened[Symbol.dispose]()
      })
    },
  }
}

/** Where there is no room for it, the file grows as far as it can when it has to. */
function allocate(path: string): Descriptor {
  const file = openDescriptor(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  const { size } = fstatSync(file.fd)
  try {
    if (size < ALLOCATED_BYTES) writeAt(file, Buffer.alloc(ALLOCATED_BYTES - size), size)
    fsyncSync(file.fd)
  } catch (error) {
    if (!hasCode(error, 'ENOSPC', 'EDQUOT')) {
      file[Symbol.dispose]()
      throw error
    }
  }
  return file
}

function writeAt({ fd }: Descriptor, bytes: Buffer, position: number): number {
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

interface Contents {
  /** Of the newest generation that is complete; 0 where there is none. */
  number: number
  highest: number
  /** What counts, oldest first. */
  records: object[]
}

/**
 * The newest complete generation, and what lies in a newer one: that is the same again where a crash has cut its beginning
 * short, and more where its beginning is damaged.
 */
function readContents(files: readonly (Buffer | undefined)[]): Contents {
  const generations = new Map<number, { isComplete: boolean; records: object[] }>()
  for (const { generation, record } of files.flatMap((bytes) => [...linesOf(bytes ?? Buffer.alloc(0))])) {
    const known = generations.get(generation) ?? { isComplete: false, records: [] }
    generations.set(generation, known)
    if ('begunWith' in record) known.isComplete = known.records.length === record.begunWith
    else known.records.push(record)
  }
  const numbers = [...generations.keys()].sort((a, b) => a - b)
  const number = numbers.findLast((candidate) => generations.get(candidate)?.isComplete) ?? 0
  const counting = numbers.filter((candidate) => candidate >= number)
  const records = counting.flatMap((candidate) => generations.get(candidate)?.records ?? [])
  return { number, highest: numbers.at(-1) ?? 0, records }
}

/** For each file what is wrong with it, where a crash of ours cannot be the reason. */
function damagesOf(files: readonly (Buffer | undefined)[], { number, highest }: Contents): (string | undefined)[] {
  const isNew = files.every((bytes) => bytes === undefined)
  return files.map((bytes) => {
    if (isNew) return undefined
    if (!bytes) return 'is missing'
    if (bytes.length < ALLOCATED_BYTES) return 'is shorter than it was made'
    const lines = [...linesOf(bytes)]
    // From the second generation on both files have been written.
    if (lines.length === 0) return highest > 1 ? 'holds nothing that can be read' : undefined
    const unreadable = lines.findLast(({ generation }) => generation >= number)?.unreadableBefore ?? 0
    return unreadable > 0 ? `has ${unreadable} lines that cannot be read` : undefined
  })
}

/** A copy of it, for whoever wants to see what it held. */
function keepAside(path: string): string {
  if (!existsSync(path)) return 'what it held is lost'
  const copy = `${path}.damaged-${Date.now()}`
  try {
    copyFileSync(path, copy)
    return `it is kept as ${copy}`
  } catch (error) {
    return `it could not be kept: ${error instanceof Error ? error.message : error}`
  }
}

function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

function* linesOf(bytes: Buffer): Generator<{ generation: number; record: object; unreadableBefore: number }> {
  let unreadable = 0
  for (let start = 0, end = bytes.indexOf(10); end >= 0; start = end + 1, end = bytes.indexOf(10, start)) {
    const line = bytes.subarray(start, end)
    const text = line.subarray(9)
    if (line.subarray(0, 8).toString('latin1') !== checksum(text)) {
      unreadable++
      continue
    }
    const space = text.indexOf(32)
    yield {
      generation: Number(text.subarray(0, space).toString('latin1')),
      record: JSON.parse(text.subarray(space + 1).toString()) as object,
      unreadableBefore: unreadable,
    }
  }
}

// Bytes on their way from a sender to a file. Every chunk is checked against the size limit and the quota before it is
// written; chunks are gathered so that the disk gets few large writes, one of them under way while the next is gathered.
import { writev, writevSync } from 'node:fs'
import { promisify } from 'node:util'
import { fail } from '../../../contract/errors.ts'
import { freeMemory } from '../../../kit/bytes.ts'
import type { OpenFile } from '../sandbox/directory.ts'
import { spaceOf } from '../space/amounts.ts'
import { type Reservation, STEP_BYTES } from '../space/reservation.ts'

/** Two of these are in memory for each transfer: large enough for the disk, small enough for many transfers at once. */
const GATHERED_BYTES = 128 * 1024
/** So little goes to the page cache at once, which costs less than a round through the thread pool. */
const SMALL_BYTES = 16 * 1024
const writevAsync = promisify(writev)

export interface ReceiveOptions {
  maxBytes?: number
  signal?: AbortSignal
  /** Where in the file the first byte goes; 0 by default. */
  at?: number
  /** Whether what came before the sender was cut off is to be on disk when this fails. */
  keepPartial?: boolean
  /** Whether nobody else looks at the chunks any more, so that their memory can be given back at once. */
  ownsChunks?: boolean
}

/** Takes space as bytes arrive, a step ahead of them, from one reservation that several files may share. */
export interface Space {
  /** Resolves once `bytes` more may be written, else fails with `quota_exceeded` or `disk_full`. */
  need(bytes: number, maxBytes: number): Promise<void> | undefined
}

export function spaceFrom(reservation: Reservation): Space {
  async function grow(bytes: number, maxBytes: number): Promise<void> {
    const needed = spaceOf(bytes - reservation.unwritten())
    const ahead = Math.min(STEP_BYTES, reservation.unarrived() || spaceOf(maxBytes))
    // No trash goes for a step ahead: near the limit, only what is needed is taken.
    if (ahead <= needed || !(await reservation.tryGrow(ahead))) await reservation.grow(needed)
    reservation.written(bytes)
  }
  return {
    need(bytes, maxBytes) {
      if (bytes > reservation.unwritten()) return grow(bytes, maxBytes)
      reservation.written(bytes)
      return undefined
    },
  }
}

/** Answers how many bytes were written. Nothing is being written any more once this has resolved or failed. */
export async function receiveBytes(
  file: OpenFile,
  source: AsyncIterable<Uint8Array>,
  space: Space,
  { maxBytes = Number.POSITIVE_INFINITY, signal, at = 0, keepPartial = false, ownsChunks = false }: ReceiveOptions,
): Promise<number> {
  const writer = createWriter(file, at, ownsChunks)
  let bytes = 0
  try {
    for await (const chunk of source) {
      signal?.throwIfAborted()
      bytes += chunk.length
      if (bytes > maxBytes) throw fail('too_large', `The limit is ${maxBytes} bytes.`)
      const taking = space.need(chunk.length, maxBytes)
      if (taking) await taking
      const writing = writer.add(chunk)
      if (writing) await writing
    }
  } catch (error) {
    if (keepPartial) await writer.flush()
    throw error
  } finally {
    await writer.settled()
  }
  await writer.flush()
  return bytes
}

function createWriter(file: OpenFile, start: number, ownsChunks: boolean) {
  let gathered: Uint8Array[] = []
  let gatheredBytes = 0
  let position = start
  let writing: Promise<void> = Promise.resolve()

  async function startWriting(): Promise<void> {
    await writing
    const [chunks, at] = [gathered, position]
    const isSmall = gatheredBytes <= SMALL_BYTES
    position += gatheredBytes
    gathered = []
    gatheredBytes = 0
    writing = writeAll(file, chunks, at, isSmall).then(() => (ownsChunks ? chunks.forEach(giveBack) : undefined))
    // Whoever waits for it next hears of a failure.
    writing.catch(() => {})
  }

  return {
    add(chunk: Uint8Array): Promise<void> | undefined {
      gathered.push(chunk)
      gatheredBytes += chunk.length
      return gatheredBytes >= GATHERED_BYTES ? startWriting() : undefined
    },
    async flush(): Promise<void> {
      if (gatheredBytes > 0) await startWriting()
      await writing
    },
    async settled(): Promise<void> {
      await writing.catch(() => {})
    },
  }
}

async function writeAll(file: OpenFile, chunks: readonly Uint8Array[], start: number, isSmall: boolean): Promise<void> {
  let rest = chunks
  let at = start
  while (rest.length > 0) {
    const bytesWritten = isSmall
      ? writevSync(file.fd, rest, at)
      : (await file.use((fd) => writevAsync(fd, rest, at))).bytesWritten
    at += bytesWritten
    rest = withoutFirst(rest, bytesWritten)
  }
}

/**
 * A body arrives in buffers of 64 KiB outside the heap, which the collector sees no hurry to free: many uploads at once
 * would leave a hundred megabytes of them lying about. Only a buffer that the chunk has to itself is given back.
 */
function giveBack({ buffer, byteLength }: Uint8Array): void {
  if (buffer.byteLength === byteLength) freeMemory(buffer)
}

/** A full disk may take a part of a write and refuse the rest only the next time. */
function withoutFirst(chunks: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let skipped = 0
  let index = 0
  for (; index < chunks.length; index++) {
    const length = chunks[index]?.length ?? 0
    if (skipped + length > bytes) break
    skipped += length
  }
  const rest = chunks.slice(index)
  if (rest[0]) rest[0] = rest[0].subarray(bytes - skipped)
  return rest
}

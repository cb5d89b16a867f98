// The bytes of an archive as they are read: by position, from a file that somebody else owns and closes.
import { pipeline, Readable, type Transform } from 'node:stream'
import type { Turns } from '../../../kit/waiting/turns.ts'
import type { OpenFile } from '../sandbox/directory.ts'

const CHUNK_BYTES = 256 * 1024

export interface ReadOptions {
  /** Looked at by every loop that reads. */
  signal: AbortSignal
  /** Asked by every loop that grows with the archive and may wait for nothing else. */
  turn: Turns
  /** Called for every piece as it comes out of a decompressor, whatever it is then used for; throws when it is too much. */
  onInflated(bytes: number): void
}

/** From `start` up to, not including, `end`. */
export async function* bytesOf(
  file: Pick<OpenFile, 'read'>,
  start: number,
  end: number,
  { signal }: Pick<ReadOptions, 'signal'>,
): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end; ) {
    signal.throwIfAborted()
    const buffer = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, end - at))
    const bytes = await file.read(buffer, 0, buffer.length, at)
    if (bytes === 0) return
    at += bytes
    yield buffer.subarray(0, bytes)
  }
}

/** Ends `source` when whoever reads this ends early. */
export async function* inflated(
  source: AsyncIterable<Uint8Array>,
  inflater: Transform | undefined,
  { signal, onInflated }: ReadOptions,
): AsyncGenerator<Uint8Array> {
  // What goes wrong reaches the reader: pipeline destroys the inflater with the same error.
  const pieces = inflater ? pipeline(Readable.from(source, { objectMode: false }), inflater, () => {}) : source
  for await (const piece of pieces as AsyncIterable<Uint8Array>) {
    signal.throwIfAborted()
    onInflated(piece.length)
    yield piece
  }
}

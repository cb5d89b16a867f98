// Bytes on their way to a bucket: read again for each attempt, in pieces, with a checksum that the provider compares.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { crc32 } from 'node:zlib'
import type { BlobSource, CopyOptions } from '../store.ts'
import type { S3Traits } from './address.ts'
import type { Attempt } from './requests.ts'

const READ_BYTES = 1024 * 1024
/** So that a slow connection, or a rate, is seen to move. */
const PIECE_BYTES = 128 * 1024
/** One is being written and one waits to be, since each is larger than what a socket takes ahead; and one more. */
const CHUNKS_IN_STREAM = 3
/** Each piece has a price: what is taken within this time is followed by one twice as large (`npm run bench -- offsite`). */
const QUICK_MS = 50

/** A source of what is in memory. */
export const memorySource = (bytes: Uint8Array): BlobSource => ({
  sizeBytes: bytes.length,
  read: async ({ offset, length }) => bytes.subarray(offset, offset + length),
})

/** A stretch of another. */
export const sliceOf = (source: BlobSource, from: number, sizeBytes: number): BlobSource => ({
  sizeBytes,
  read: ({ offset, length }, into) => source.read({ offset: from + offset, length }, into),
})

/** A chunk is gone once this many have come after it, so that reading makes no garbage (`npm run bench -- offsite`). */
async function* chunksOf(source: BlobSource, kept: number): AsyncGenerator<Uint8Array, void, undefined> {
  const buffers: Buffer[] = []
  const { sizeBytes } = source
  for (let offset = 0; offset < sizeBytes; offset += READ_BYTES) {
    const length = Math.min(READ_BYTES, sizeBytes - offset)
    const into = buffers.length > kept ? buffers.shift() : undefined
    const chunk = into ?? Buffer.allocUnsafeSlow(length)
    buffers.push(chunk)
    yield await source.read({ offset, length }, chunk)
  }
}

export interface Digest {
  /** What goes into the input of a command. */
  input: { ChecksumCRC32?: string; ContentMD5?: string }
  /** What the command has no input for. */
  headers: Record<string, string>
}

/** A checksum is signed like every header: then the bytes need not be as well. */
const UNSIGNED = { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }

export async function digestOf(source: BlobSource, kind: S3Traits['checksum']): Promise<Digest> {
  if (kind === 'crc32') return { input: { ChecksumCRC32: await crcOf(source) }, headers: UNSIGNED }
  const hash = createHash(kind === 'md5' ? 'md5' : 'sha256')
  for await (const chunk of chunksOf(source, 0)) hash.update(chunk)
  if (kind === 'md5') return { input: { ContentMD5: hash.digest('base64') }, headers: UNSIGNED }
  return { input: {}, headers: { 'x-amz-content-sha256': hash.digest('hex') } }
}

/** As S3 writes it. */
export async function crcOf(source: BlobSource): Promise<string> {
  let crc = 0
  for await (const chunk of chunksOf(source, 0)) crc = crc32(chunk, crc)
  return formatCrc(crc)
}

export function formatCrc(crc: number): string {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(crc)
  return bytes.toString('base64')
}

/** Of one attempt, which it fails where the source does. Whoever asks for it destroys it. */
export function bodyOf(source: BlobSource, attempt: Attempt, pace: CopyOptions['pace']): Readable {
  async function* pieces(): AsyncGenerator<Uint8Array, void, undefined> {
    let pieceBytes = PIECE_BYTES
    for await (const chunk of chunksOf(source, CHUNKS_IN_STREAM)) {
      for (let at = 0; at < chunk.length; ) {
        const piece = chunk.subarray(at, at + pieceBytes)
        at += piece.length
        const begun = performance.now()
        await pace?.(piece.length)
        attempt.touch()
        yield piece
        const isQuick = performance.now() - begun < QUICK_MS
        pieceBytes = isQuick ? Math.min(2 * pieceBytes, READ_BYTES) : PIECE_BYTES
      }
    }
  }
  const body = Readable.from(pieces(), { objectMode: false, highWaterMark: PIECE_BYTES })
  body.on('error', attempt.fail)
  return body
}

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

/** A source of what is in memory. */
export const memorySource = (bytes: Uint8Array): BlobSource => ({
  sizeBytes: bytes.length,
  read: async ({ offset, length }) => bytes.subarray(offset, offset + length),
})

/** A stretch of another. */
export const sliceOf = (source: BlobSource, from: number, sizeBytes: number): BlobSource => ({
  sizeBytes,
  read: ({ offset, length }) => source.read({ offset: from + offset, length }),
})

async function* chunksOf(source: BlobSource): AsyncGenerator<Uint8Array, void, undefined> {
  for (let offset = 0; offset < source.sizeBytes; offset += READ_BYTES)
    yield await source.read({ offset, length: Math.min(READ_BYTES, source.sizeBytes - offset) })
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
  for await (const chunk of chunksOf(source)) hash.update(chunk)
  if (kind === 'md5') return { input: { ContentMD5: hash.digest('base64') }, headers: UNSIGNED }
  return { input: {}, headers: { 'x-amz-content-sha256': hash.digest('hex') } }
}

/** As S3 writes it. */
export async function crcOf(source: BlobSource): Promise<string> {
  let crc = 0
  for await (const chunk of chunksOf(source)) crc = crc32(chunk, crc)
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
    for await (const chunk of chunksOf(source)) {
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        const piece = chunk.subarray(at, at + PIECE_BYTES)
        await pace?.(piece.length)
        attempt.touch()
        yield piece
      }
    }
  }
  const body = Readable.from(pieces(), { objectMode: false, highWaterMark: PIECE_BYTES })
  body.on('error', attempt.fail)
  return body
}

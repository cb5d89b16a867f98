// Blobs on their way out of a bucket. An answer counts only when all of it has come, and where the provider has a checksum,
// when it agrees.
import type { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { crc32 } from 'node:zlib'
import { GetObjectCommand, type GetObjectCommandOutput, HeadObjectCommand } from '@aws-sdk/client-s3'
import { BlobDamaged, type BlobInfo, BlobMissing, type ByteRange } from '../store.ts'
import { formatCrc } from './bodies.ts'
import { hostOf, S3Fault } from './faults.ts'
import { type Attempt, type Requests, withDirect, withHeaders } from './requests.ts'

export interface S3BlobInfo extends BlobInfo {
  /** Of all its bytes, where the provider keeps it. */
  crc: string | null
}

/** Throws `BlobMissing` where there is none. */
export async function readStat(requests: Requests, name: string): Promise<S3BlobInfo> {
  const { client, address } = requests
  const mode = address.traits.checksum === 'crc32' ? { ChecksumMode: 'ENABLED' as const } : {}
  const input = { ...requests.place(name), ...mode }
  try {
    const answer = await requests.run('HeadObject', ({ signal }) =>
      client.send(new HeadObjectCommand(input), { abortSignal: signal }),
    )
    const { ContentLength: sizeBytes, LastModified } = answer
    if (sizeBytes === undefined) throw notS3(requests)
    return { name, sizeBytes, modifiedAt: LastModified?.getTime() ?? 0, crc: wholeCrc(answer) }
  } catch (error) {
    // Such an answer has no body: it says neither what is missing or refused, nor whether S3 has given it. That to a GET does.
    if (error instanceof S3Fault && [400, 403, 404].includes(error.status ?? 0))
      await readRange(requests, name, { offset: 0, length: 1 })
    throw error
  }
}

/** As `BlobStore.get`. */
export async function readRange(
  requests: Requests,
  name: string,
  range?: ByteRange,
  into?: Uint8Array,
): Promise<Uint8Array> {
  if (range?.length === 0) {
    await readStat(requests, name)
    return new Uint8Array()
  }
  const attempt = () => requests.run('GetObject', (attempt) => readOnce(requests, attempt, name, range, into))
  try {
    const first = await attempt()
    if (first.isSound) return first.bytes
    // Perhaps it was damaged on its way only.
    const second = await attempt()
    if (second.isSound) return second.bytes
  } catch (error) {
    if (!(error instanceof S3Fault)) throw error
    if (error.s3Code === 'NoSuchKey') throw new BlobMissing(name, error)
    // It begins where the blob has ended.
    if (error.status === 416) return new Uint8Array()
    throw error
  }
  throw new BlobDamaged(name)
}

async function readOnce(
  requests: Requests,
  attempt: Attempt,
  name: string,
  range: ByteRange | undefined,
  into: Uint8Array | undefined,
): Promise<{ bytes: Uint8Array; isSound: boolean }> {
  const { client, address } = requests
  const Range = range ? { Range: `bytes=${range.offset}-${range.offset + range.length - 1}` } : {}
  // Not by the input of that name, with which the client would check by itself and throw an error without a code.
  const isChecked = !range && address.traits.checksum === 'crc32'
  const command = new GetObjectCommand({ ...requests.place(name), ...Range })
  if (isChecked) withHeaders(command, { 'x-amz-checksum-mode': 'ENABLED' })
  const isDirect = range !== undefined && into !== undefined && into.length >= range.length
  const received = isDirect ? withDirect(command, requests, into, attempt) : () => undefined
  const answer = await client.send(command, { abortSignal: attempt.signal })
  const body = answer.Body as Readable
  try {
    const length = lengthOf(requests, answer, range)
    if (received() === length) return { bytes: (into as Uint8Array).subarray(0, length), isSound: true }
    const bytes = await collect(requests, attempt, body, length, into)
    const expected = range ? null : wholeCrc(answer)
    return { bytes, isSound: expected === null || expected === formatCrc(crc32(bytes)) }
  } finally {
    body.destroy()
  }
}

/** How many bytes are to come. Throws where it is not what was asked for. */
function lengthOf(requests: Requests, answer: GetObjectCommandOutput, range: ByteRange | undefined): number {
  const { ContentLength: length, ContentRange, $metadata } = answer
  if (length === undefined) throw notS3(requests)
  if (!range) return length
  // The whole of it, where that is no more than was asked for.
  if ($metadata.httpStatusCode === 200 && range.offset === 0 && length <= range.length) return length
  const [, from, to, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(ContentRange ?? '')?.map(Number) ?? []
  if (from === undefined || to === undefined || total === undefined) throw notS3(requests)
  const expected = Math.min(range.length, total - range.offset)
  if (from !== range.offset || to - from + 1 !== expected || length !== expected) throw notS3(requests)
  return length
}

async function collect(
  requests: Requests,
  attempt: Attempt,
  body: Readable,
  length: number,
  into: Uint8Array | undefined,
): Promise<Uint8Array> {
  const bytes = into && into.length >= length ? into.subarray(0, length) : Buffer.allocUnsafeSlow(length)
  let done = 0
  // Not by iterating, which joins what has come meanwhile: each byte would be copied twice (`npm run bench -- offsite`).
  body.on('data', (chunk: Buffer) => {
    attempt.touch()
    // Not `set`, which takes shared memory byte by byte.
    if (done + chunk.length <= length) chunk.copy(bytes, done)
    done += chunk.length
  })
  await finished(body)
  if (done !== length) throw cutShort(requests)
  return bytes
}

/** That of a blob that came in parts is one of the checksums of its parts. */
function wholeCrc({
  ChecksumCRC32: crc,
  ChecksumType: type,
}: {
  ChecksumCRC32?: string
  ChecksumType?: string
}): string | null {
  return crc === undefined || type === 'COMPOSITE' || crc.includes('-') ? null : crc
}

const cutShort = ({ address }: Requests) =>
  new S3Fault('bad_transfer', `${hostOf(address)} did not send as many bytes as it had announced.`, { isPassing: true })

const notS3 = ({ address }: Requests) =>
  new S3Fault('not_s3', `${hostOf(address)} does not answer as S3 does. Check the endpoint.`)

// Uploads in parts: invisible until they are completed, and paid for until they are aborted.
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import type { BlobSource, CopyOptions } from '../store.ts'
import { bodyOf, digestOf } from './bodies.ts'
import { S3Fault } from './faults.ts'
import { type Requests, rootOf, withHeaders } from './requests.ts'

export interface Multipart {
  /** From 1. Several at once, in any order; all of one size but the last. */
  add(partNumber: number, source: BlobSource, options: CopyOptions): Promise<void>
  /** `exists`: there is a blob of that name, perhaps this one, of an attempt whose answer was lost. */
  complete(options: { isConditional: boolean; signal?: AbortSignal }): Promise<'placed' | 'exists'>
  /** What cannot be removed now is when the store is next opened. */
  abort(): Promise<void>
}

export async function beginMultipart(requests: Requests, name: string): Promise<Multipart> {
  const { client, address } = requests
  const place = requests.place(name)
  const kind = address.traits.checksum
  const algorithm = kind === 'crc32' ? { ChecksumAlgorithm: 'CRC32' as const } : {}
  const { UploadId } = await requests.run('CreateMultipartUpload', ({ signal }) =>
    client.send(new CreateMultipartUploadCommand({ ...place, ...algorithm }), { abortSignal: signal }),
  )
  const upload = { ...place, UploadId }
  const parts: CompletedPart[] = []

  return {
    async add(PartNumber, source, { pace, signal }) {
      const { input, headers } = await digestOf(source, kind)
      const answer = await requests.run(
        'UploadPart',
        async (attempt) => {
          const Body = bodyOf(source, attempt, pace)
          const sized = { ...upload, ...input, PartNumber, Body, ContentLength: source.sizeBytes }
          const command = withHeaders(new UploadPartCommand(sized), headers)
          return await client.send(command, { abortSignal: attempt.signal }).finally(() => Body.destroy())
        },
        { signal },
      )
      const crc = input.ChecksumCRC32 === undefined ? {} : { ChecksumCRC32: input.ChecksumCRC32 }
      parts.push({ PartNumber, ETag: answer.ETag, ...crc })
    },

    async complete({ isConditional, signal }) {
      const Parts = parts.toSorted((one, other) => (one.PartNumber ?? 0) - (other.PartNumber ?? 0))
      const condition = isConditional ? { IfNoneMatch: '*' } : {}
      const input = { ...upload, ...condition, MultipartUpload: { Parts } }
      try {
        await requests.run(
          'CompleteMultipartUpload',
          (attempt) => client.send(new CompleteMultipartUploadCommand(input), { abortSignal: attempt.signal }),
          { signal },
        )
        return 'placed'
      } catch (error) {
        if (isRefusedCondition(error) || (error instanceof S3Fault && error.s3Code === 'NoSuchUpload')) return 'exists'
        throw error
      }
    },

    abort: () => abortUpload(requests, upload),
  }
}

export const isRefusedCondition = (error: unknown) =>
  error instanceof S3Fault && (error.s3Code === 'PreconditionFailed' || error.status === 412)

async function abortUpload(
  requests: Requests,
  upload: { Bucket: string; Key: string; UploadId: string | undefined },
): Promise<void> {
  const work = ({ signal }: { signal: AbortSignal }) =>
    requests.client.send(new AbortMultipartUploadCommand(upload), { abortSignal: signal })
  await requests.run('AbortMultipartUpload', work).catch((error: unknown) => {
    if (!(error instanceof S3Fault)) throw error
  })
}

/** Everything unfinished below our prefix. Where a key may not, or a provider cannot, its rules for old uploads remain. */
export async function abortAll(requests: Requests): Promise<void> {
  const { client, address } = requests
  let after: { KeyMarker?: string; UploadIdMarker?: string } = {}
  for (;;) {
    const input = { Bucket: address.bucket, Prefix: rootOf(address), ...after }
    const page = await requests
      .run('ListMultipartUploads', ({ signal }) =>
        client.send(new ListMultipartUploadsCommand(input), { abortSignal: signal }),
      )
      .catch((error: unknown) => {
        if (error instanceof S3Fault && ['no_permission', 'not_supported'].includes(error.code)) return undefined
        throw error
      })
    for (const { Key, UploadId } of page?.Uploads ?? [])
      if (Key !== undefined) await abortUpload(requests, { Bucket: address.bucket, Key, UploadId })
    if (!page?.IsTruncated || page.NextKeyMarker === undefined) return
    after = {
      KeyMarker: page.NextKeyMarker,
      ...(page.NextUploadIdMarker ? { UploadIdMarker: page.NextUploadIdMarker } : {}),
    }
  }
}

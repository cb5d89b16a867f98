// Blobs in a bucket, below a prefix, under their own names.
import { DeleteObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3'
import { type BlobInfo, checkBlobName, isBlobName, type RemoteStore } from '../store.ts'
import type { S3Address } from './address.ts'
import { memorySource } from './bodies.ts'
import { readRange, readStat } from './downloads.ts'
import { hostOf, S3Fault } from './faults.ts'
import { abortAll } from './multiparts.ts'
import { createRequests, type Patience, type Requests, rootOf } from './requests.ts'
import { upload } from './uploads.ts'
import { createWriter } from './writer.ts'

/**
 * One service at a time may write below the prefix, and only it may say `clear`, which removes what an earlier one has left
 * unfinished. Everything but `clear` waits for the first use.
 */
export async function openS3Store(
  address: S3Address,
  options: { clear: boolean; isReadOnly?: boolean },
  patience?: Patience,
): Promise<RemoteStore> {
  const requests = createRequests(address, patience)
  if (options.clear && !options.isReadOnly) await abortAll(requests)
  return {
    create: async (name) => createWriter(requests, checkBlobName(name)),
    put: async (name, bytes) => upload(requests, checkBlobName(name), memorySource(bytes), { replace: true }),
    copyIn: async (name, source, copyOptions) => upload(requests, checkBlobName(name), source, copyOptions),
    get: async (name, range, into) => readRange(requests, checkBlobName(name), range, into),

    async open(name) {
      await readStat(requests, checkBlobName(name))
      return { get: (range, into) => readRange(requests, name, range, into), close: async () => {} }
    },

    async stat(name) {
      const { sizeBytes, modifiedAt } = await readStat(requests, checkBlobName(name))
      return { name, sizeBytes, modifiedAt }
    },

    list: (prefix) => listBlobs(requests, prefix),
    async listAll() {
      const { blobs, next } = await readPage(requests, '')
      return next === undefined ? blobs : undefined
    },
    delete: async (name) => deleteBlob(requests, checkBlobName(name)),
  }
}

async function* listBlobs(requests: Requests, prefix: string): AsyncGenerator<BlobInfo, void, undefined> {
  const folder = prefix.slice(0, Math.max(0, prefix.lastIndexOf('/')))
  if (folder) checkBlobName(folder)
  let token: string | undefined
  do {
    const page = await readPage(requests, prefix, token)
    yield* page.blobs
    token = page.next
  } while (token !== undefined)
}

/** A thousand names a request. What is below the prefix and has no name of ours is somebody else's. */
export async function readPage(
  requests: Requests,
  prefix: string,
  token?: string,
): Promise<{ blobs: BlobInfo[]; next: string | undefined }> {
  const { client, address } = requests
  const root = rootOf(address)
  const input = { Bucket: address.bucket, Prefix: root + prefix, ...(token ? { ContinuationToken: token } : {}) }
  const page = await requests.run('ListObjectsV2', ({ signal }) =>
    client.send(new ListObjectsV2Command(input), { abortSignal: signal }),
  )
  const blobs: BlobInfo[] = []
  for (const { Key = '', Size: sizeBytes = 0, LastModified } of page.Contents ?? []) {
    const name = Key.slice(root.length)
    if (isBlobName(name)) blobs.push({ name, sizeBytes, modifiedAt: LastModified?.getTime() ?? 0 })
  }
  const next = page.IsTruncated ? page.NextContinuationToken : undefined
  // A list that ends early would be taken for blobs that are missing.
  if (page.IsTruncated && (next === undefined || next === token))
    throw new S3Fault('not_s3', `${hostOf(address)} does not say how its list goes on.`)
  return { blobs, next }
}

async function deleteBlob(requests: Requests, name: string): Promise<void> {
  const work = ({ signal }: { signal: AbortSignal }) =>
    requests.client.send(new DeleteObjectCommand(requests.place(name)), { abortSignal: signal })
  await requests.run('DeleteObject', work).catch((error: unknown) => {
    if (!(error instanceof S3Fault) || error.s3Code !== 'NoSuchKey') throw error
  })
}

// Opens a store from plain data, so that a worker thread can open the same one.
import { openLocalStore } from './local.ts'
import type { S3Address } from './s3/address.ts'
import type { BlobStore } from './store.ts'

export type BlobStoreAddress = { kind: 'local'; dir: string } | S3Address

export async function openBlobStore(
  address: BlobStoreAddress,
  options: { clear: boolean; isReadOnly?: boolean },
): Promise<BlobStore> {
  if (address.kind === 'local') return openLocalStore(address.dir, options)
  // Only now: a service without a bucket does not wait for its client to be read from disk.
  const { openS3Store } = await import('./s3/s3-store.ts')
  return openS3Store(address, options)
}

// Opens a store from plain data, so that a worker thread can open the same one.

import { openLocalStore } from './local.ts'
import { onceDone } from './once-done.ts'
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

/** Opened when it is first asked for something: one that cannot be reached keeps nobody from starting. */
export function openWhenUsed(open: () => Promise<BlobStore>): BlobStore {
  const opened = onceDone(open)
  return {
    create: async (name) => (await opened()).create(name),
    put: async (name, bytes) => (await opened()).put(name, bytes),
    get: async (name, range, into) => (await opened()).get(name, range, into),
    open: async (name) => (await opened()).open(name),
    stat: async (name) => (await opened()).stat(name),
    async *list(prefix) {
      yield* (await opened()).list(prefix)
    },
    listAll: async () => (await opened()).listAll?.(),
    delete: async (name) => (await opened()).delete(name),
  }
}

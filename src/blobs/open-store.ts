// Opens a store from plain data, so that a worker thread can open the same one.
import { openLocalStore } from './local.ts'
import type { BlobStore } from './store.ts'

export type BlobStoreAddress = { kind: 'local'; dir: string }

export function openBlobStore(
  address: BlobStoreAddress,
  options: { clear: boolean; isReadOnly?: boolean },
): Promise<BlobStore> {
  return openLocalStore(address.dir, options)
}

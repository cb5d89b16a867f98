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

/** Opened when it is first asked for something: one that cannot be reached keeps nobody from starting. */
export function openWhenUsed(open: () => Promise<BlobStore>): BlobStore {
  let opening: Promise<BlobStore> | undefined
  const opened = () => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }
  return {
    create: async (name) => (await opened()).create(name),
    put: async (name, bytes) => (await opened()).put(name, bytes),
    get: async (name, range, into) => (await opened()).get(name, range, into),
    open: async (name) => (await opened()).open(name),
    stat: async (name) => (await opened()).stat(name),
    async *list(prefix) {
      yield* (await opened()).list(prefix)
    },
    delete: async (name) => (await opened()).delete(name),
  }
}

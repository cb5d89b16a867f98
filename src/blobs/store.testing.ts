// What tests do to stores: make them fail, and look at and spoil the files of those that are folders.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { BlobStore } from './store.ts'

export type StoreCall = 'put' | 'commit' | 'delete' | 'get' | 'stat' | 'list'

export interface Faults {
  /** Before each call; what it throws or never resolves is what the caller meets. */
  before?: (call: StoreCall, name: string) => Promise<void> | void
  /** Of these only a part is kept, though all is acknowledged. */
  keepsPart?: (name: string) => boolean
  /** After each `get`. */
  onRead?: (bytes: number) => void
}

/** A store over another, with whatever faults are set at the time. */
export function createFaultyStore(store: BlobStore, faults: Faults): BlobStore {
  const before = async (call: StoreCall, name: string) => faults.before?.(call, name)
  const keptOf = (name: string, bytes: Uint8Array) =>
    faults.keepsPart?.(name) ? bytes.subarray(0, Math.floor(bytes.length / 2)) : bytes
  return {
    async create(name) {
      const writer = await store.create(name)
      return {
        ...writer,
        write: (bytes) => writer.write(keptOf(name, bytes)),
        async commit() {
          await before('commit', name)
          await writer.commit()
        },
      }
    },
    async put(name, bytes) {
      await before('put', name)
      await store.put(name, keptOf(name, bytes))
    },
    async get(name, range, into) {
      await before('get', name)
      const bytes = await store.get(name, range, into)
      faults.onRead?.(bytes.length)
      return bytes
    },
    open: store.open,
    async stat(name) {
      await before('stat', name)
      return await store.stat(name)
    },
    async *list(prefix) {
      await before('list', prefix)
      yield* store.list(prefix)
    },
    async delete(name) {
      await before('delete', name)
      await store.delete(name)
    },
  }
}

/** The files of the blobs below a folder of a store that is one itself. */
export function blobsIn(dir: string, folder: string): string[] {
  if (!existsSync(join(dir, folder))) return []
  return readdirSync(join(dir, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

/** The last segments of their names. */
export const namesIn = (dir: string, folder: string) =>
  blobsIn(dir, folder)
    .map((path) => basename(path))
    .sort()

export function flip(path: string, at: number, mask = 1): void {
  const bytes = readFileSync(path)
  bytes[at] = (bytes[at] ?? 0) ^ mask
  writeFileSync(path, bytes)
}

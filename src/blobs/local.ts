// Blobs on a local disk: written beside, synced, renamed, and the directory synced.
import { constants, fstat } from 'node:fs'
import { mkdir, open, opendir, rename, rm, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type Descriptor, openDescriptor, openDescriptorAsync } from '../kit/files/descriptor.ts'
import { hasCode } from '../kit/files/errno.ts'
import { readFully } from '../kit/files/read-fully.ts'
import { createBulkFile } from './bulk-file.ts'
import { BlobMissing, type BlobStore, type BlobWriter, checkBlobName } from './store.ts'

const fstatAsync = promisify(fstat)

/** Not a name that `checkBlobName` lets through, so no blob is ever taken for one that is being written. */
const UNFINISHED = '.unfinished'
/** Each further one needs another delete that empties the same directory in between. */
const PLACE_ATTEMPTS = 5

/**
 * One process at a time may write to `dir`. Opening for reading as well is free, but only the writer may say
 * `clear`, since it removes what an earlier writer left unfinished. `isReadOnly`: nothing is made in `dir`, which may be a
 * disk that cannot be written to.
 */
export async function openLocalStore(
  dir: string,
  options: { clear: boolean; isReadOnly?: boolean },
): Promise<BlobStore> {
  const unfinished = join(dir, UNFINISHED)
  if (options.clear) await rm(unfinished, { recursive: true, force: true })
  if (!options.isReadOnly) await mkdir(unfinished, { recursive: true })
  const madeDirectories = new Set<string>([dir])
  let sequence = 0

  async function ensureDirectory(path: string): Promise<void> {
    if (madeDirectories.has(path)) return
    await ensureDirectory(dirname(path))
    await mkdir(path).catch((error) => {
      if (!hasCode(error, 'EEXIST')) throw error
    })
    await syncDirectory(dirname(path))
    madeDirectories.add(path)
  }

  /** A delete that empties the directory removes it, perhaps just before the blob comes: then it is made once more. */
  async function place(temporary: string, path: string): Promise<void> {
    const folder = dirname(path)
    for (let attempt = 1; ; attempt++) {
      await ensureDirectory(folder)
      try {
        return await rename(temporary, path)
      } catch (error) {
        if (!hasCode(error, 'ENOENT') || attempt === PLACE_ATTEMPTS) throw error
        madeDirectories.delete(folder)
      }
    }
  }

  /** One level, such as that of a server's manifests; what is directly in `dir` stays. False where something is in it. */
  async function removeIfEmpty(folder: string): Promise<boolean> {
    if (folder === dir || dirname(folder) === dir) return false
    try {
      await rmdir(folder)
      madeDirectories.delete(folder)
      return true
    } catch (error) {
      if (hasCode(error, 'ENOTEMPTY', 'EEXIST')) return false
      if (hasCode(error, 'ENOENT')) return true
      throw error
    }
  }

  async function create(name: string): Promise<BlobWriter> {
    const path = join(dir, checkBlobName(name))
    const temporary = join(unfinished, `${process.pid}-${sequence++}`)
    const file = await createBulkFile(temporary, 0o600)
    let isOpen = true
    const close = async () => {
      if (isOpen) {
        isOpen = false
        await file.close()
      }
    }
    const abort = async () => {
      await close().catch(() => {})
      await rm(temporary, { force: true })
    }
    return {
      write: file.write,
      async commit() {
        try {
          await file.sync()
          await close()
          await place(temporary, path)
          await syncDirectory(dirname(path))
        } catch (error) {
          await abort().catch(() => {})
          throw error
        }
      },
      abort,
    }
  }

  return {
    create,

    async put(name, bytes) {
      const writer = await create(name)
      try {
        await writer.write(bytes)
      } catch (error) {
        await writer.abort()
        throw error
      }
      await writer.commit()
    },

    async get(name, range, into) {
      using file = await openBlob(dir, name)
      const length = range ? range.length : (await file.use((fd) => fstatAsync(fd))).size
      return await readAt(file, range?.offset ?? 0, length, into)
    },

    async open(name) {
      const file = await openBlob(dir, name)
      return {
        get: ({ offset, length }, into) => readAt(file, offset, length, into),
        close: async () => file[Symbol.dispose](),
      }
    },

    openNow(name) {
      const file = openBlobNow(dir, name)
      return {
        get({ offset, length }, into) {
          const bytes = roomFor(length, into)
          const done = readFully(file.fd, bytes, length, offset)
          return done === length ? bytes : bytes.subarray(0, done)
        },
        [Symbol.dispose]: () => file[Symbol.dispose](),
      }
    },

    async stat(name) {
      try {
        const found = await stat(join(dir, checkBlobName(name)))
        return { name, sizeBytes: found.size, modifiedAt: found.mtimeMs }
      } catch (error) {
        throw missing(name, error)
      }
    },

    async *list(prefix) {
      const folder = prefix.includes('/') ? prefix.slice(0, prefix.lastIndexOf('/')) : ''
      if (folder) checkBlobName(folder)
      for await (const name of namesUnder(dir, folder)) {
        if (!name.startsWith(prefix)) continue
        const found = await stat(join(dir, name)).catch((error) => {
          if (hasCode(error, 'ENOENT')) return undefined
          throw error
        })
        if (found) yield { name, sizeBytes: found.size, modifiedAt: found.mtimeMs }
      }
    },

    async delete(name) {
      const path = join(dir, checkBlobName(name))
      const folder = dirname(path)
      try {
        await unlink(path)
      } catch (error) {
        if (!hasCode(error, 'ENOENT', 'ENOTDIR')) throw error
        // A delete that was killed may have left the directory.
        if (hasCode(error, 'ENOENT')) await removeIfEmpty(folder)
        return
      }
      const isGone = await removeIfEmpty(folder)
      await syncDirectory(isGone ? dirname(folder) : folder).catch(async (error) => {
        // Another delete has emptied it since.
        if (isGone || !hasCode(error, 'ENOENT')) throw error
        await syncDirectory(dirname(folder))
      })
    },
  }
}

/** A descriptor: a FileHandle costs several times as much for every read (`npm run bench -- backups`, `restore`). */
async function openBlob(dir: string, name: string): Promise<Descriptor> {
  try {
    return await openDescriptorAsync(join(dir, checkBlobName(name)), constants.O_RDONLY)
  } catch (error) {
    throw missing(name, error)
  }
}

function openBlobNow(dir: string, name: string): Descriptor {
  try {
    return openDescriptor(join(dir, checkBlobName(name)), constants.O_RDONLY)
  } catch (error) {
    throw missing(name, error)
  }
}

function missing(name: string, error: unknown): unknown {
  return hasCode(error, 'ENOENT', 'ENOTDIR') ? new BlobMissing(name, error) : error
}

const roomFor = (length: number, into: Uint8Array | undefined) =>
  into && into.length >= length ? into.subarray(0, length) : Buffer.allocUnsafeSlow(length)

async function readAt(file: Descriptor, offset: number, length: number, into?: Uint8Array): Promise<Uint8Array> {
  const bytes = roomFor(length, into)
  let done = 0
  while (done < length) {
    const bytesRead = await file.read(bytes, done, length - done, offset + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return done === length ? bytes : bytes.subarray(0, done)
}

async function* namesUnder(dir: string, folder: string): AsyncGenerator<string> {
  const entries = await opendir(join(dir, folder)).catch((error) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  })
  if (!entries) return
  for await (const entry of entries) {
    if (entry.name === UNFINISHED) continue
    const name = folder ? `${folder}/${entry.name}` : entry.name
    if (entry.isDirectory()) yield* namesUnder(dir, name)
    else if (entry.isFile()) yield name
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

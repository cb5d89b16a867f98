// Writes a new file from its beginning to its end. What is large goes around the page cache where the file system allows it:
// that takes a fraction of the processor's time, and leaves in memory what games have there.
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { alignedBuffer } from '../kit/aligned.ts'
import { hasCode } from '../kit/errno.ts'

/** A multiple of every block size that direct writes may ask for. */
const BUFFER_BYTES = 2 * 1024 * 1024
/** Of one file: one is filled while the others are written. */
const BUFFERS = 3
/** Of all files: fresh memory costs more than writing what is in it. */
const BUFFERS_KEPT = 6
const spare: Buffer[] = []

export interface BulkFile {
  /** Once it resolves, the bytes may change. A failure of earlier bytes may be met here too. */
  write(bytes: Uint8Array): Promise<void>
  /** Writes what is left and makes it durable. */
  sync(): Promise<void>
  close(): Promise<void>
}

/** The file must not be there yet. */
export async function createBulkFile(path: string, mode: number): Promise<BulkFile> {
  const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode)
  const writes = new Set<Promise<void>>()
  const free: Buffer[] = []
  let direct: Promise<FileHandle | undefined> | undefined
  let made = 0
  let current: Buffer | undefined
  let filled = 0
  let position = 0
  let failure: { error: unknown } | undefined

  async function nextBuffer(): Promise<Buffer> {
    const buffer = free.pop()
    if (buffer) return buffer
    if (made < BUFFERS) {
      made++
      return spare.pop() ?? alignedBuffer(BUFFER_BYTES)
    }
    await Promise.race(writes)
    return await nextBuffer()
  }

  function startWrite(buffer: Buffer, at: number): void {
    const written = writeDirect(buffer, at)
      .catch((error) => {
        failure ??= { error }
      })
      .finally(() => {
        writes.delete(written)
        free.push(buffer)
      })
    writes.add(written)
  }

  async function writeDirect(buffer: Buffer, at: number): Promise<void> {
    direct ??= openDirect(path)
    const target = await direct
    let done = 0
    try {
      if (target) done = (await target.write(buffer, 0, buffer.length, at)).bytesWritten
    } catch (error) {
      // What else a file system asks for besides alignment to a page.
      if (!hasCode(error, 'EINVAL')) throw error
    }
    if (done < buffer.length) await writeAll(file, buffer.subarray(done), at + done)
  }

  function flush(buffer: Buffer): void {
    startWrite(buffer, position)
    position += buffer.length
    filled = 0
    current = undefined
  }

  return {
    async write(bytes) {
      const from = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
      for (let done = 0; done < bytes.length; ) {
        if (failure) throw failure.error
        current ??= await nextBuffer()
        const taken = Math.min(bytes.length - done, BUFFER_BYTES - filled)
        // Not `set`, which takes shared memory byte by byte.
        from.copy(current, filled, done, done + taken)
        filled += taken
        done += taken
        if (filled === BUFFER_BYTES) flush(current)
      }
    },
    async sync() {
      // The end is seldom as long as a direct write has to be.
      if (current && filled > 0) await writeAll(file, current.subarray(0, filled), position)
      filled = 0
      await Promise.all(writes)
      if (failure) throw failure.error
      await file.sync()
    },
    async close() {
      await Promise.all(writes)
      for (const buffer of current ? [...free, current] : free) if (spare.length < BUFFERS_KEPT) spare.push(buffer)
      free.length = 0
      current = undefined
      try {
        await (await direct?.catch(() => undefined))?.close()
      } finally {
        await file.close()
      }
    },
  }
}

/** Undefined where the system or the file system knows of no such thing, or has no descriptor left for it. */
async function openDirect(path: string): Promise<FileHandle | undefined> {
  if (constants.O_DIRECT === undefined) return undefined
  try {
    return await open(path, constants.O_WRONLY | constants.O_DIRECT | constants.O_NOFOLLOW)
  } catch (error) {
    if (!hasCode(error, 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'EMFILE', 'ENFILE')) throw error
    return undefined
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  let done = 0
  while (done < bytes.length) done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten
}

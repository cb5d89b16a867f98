// Writes a new file from its beginning to its end. What is large goes around the page cache.
import { constants, fsync } from 'node:fs'
import { promisify } from 'node:util'
import { asBuffer } from '../kit/bytes.ts'
import { type Descriptor, openDescriptorAsync } from '../kit/files/descriptor.ts'
import {
  alignedBuffer,
  createWriteBehind,
  isAligned,
  LARGE_WRITE_BYTES,
  openDirect,
  wholeUnits,
  writeAround,
} from './direct-io.ts'

const BUFFER_BYTES = 2 * 1024 * 1024
/** Of one file. */
const BUFFERS = 3
/** Of all files: fresh memory costs more than writing what is in it (`npm run bench -- backups`, `first`). */
const BUFFERS_KEPT = 6
const spare: Buffer[] = []
const fsyncAsync = promisify(fsync)

export interface BulkFile {
  /** Once it resolves, the bytes may change. A failure of earlier bytes may be met here too. */
  write(bytes: Uint8Array): Promise<void>
  /** Writes what is left and makes it durable. */
  sync(): Promise<void>
  close(): Promise<void>
}

/** The file must not be there yet. */
export async function createBulkFile(path: string, mode: number): Promise<BulkFile> {
  const file = await openDescriptorAsync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode)
  let direct: Descriptor | undefined
  const behind = createWriteBehind(BUFFERS, () => spare.pop() ?? alignedBuffer(BUFFER_BYTES))
  let current: Buffer | undefined
  let filled = 0
  let position = 0

  function flush(): void {
    if (current && filled > 0) behind.start(current, writeNext(current.subarray(0, filled)))
    if (filled > 0) current = undefined
    filled = 0
  }

  function writeNext(bytes: Uint8Array): Promise<void> {
    if (position === 0) direct = openDirect(file)
    const at = position
    position += bytes.length
    return writeAround({ fd: file.fd, directFd: direct?.fd ?? -1 }, bytes, at)
  }

  /** Into buffers that are written once they are full. */
  async function gather(bytes: Buffer): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      behind.check()
      current ??= await behind.take()
      const taken = Math.min(bytes.length - done, BUFFER_BYTES - filled)
      // Not `set`, which takes shared memory byte by byte.
      bytes.copy(current, filled, done, done + taken)
      filled += taken
      done += taken
      if (filled === BUFFER_BYTES) flush()
    }
  }

  return {
    async write(bytes) {
      const isAsItStands = bytes.length >= LARGE_WRITE_BYTES && isAligned(bytes) && wholeUnits(filled) === filled
      const whole = isAsItStands ? wholeUnits(bytes.length) : 0
      if (whole > 0) {
        behind.check()
        flush()
        await writeNext(bytes.subarray(0, whole))
      }
      await gather(asBuffer(bytes.subarray(whole)))
    },
    async sync() {
      // The end is mostly small: it goes through the cache.
      if (current && filled > 0) await writeAround({ fd: file.fd, directFd: -1 }, current.subarray(0, filled), position)
      filled = 0
      await behind.settle()
      await file.use(fsyncAsync)
    },
    async close() {
      await behind.settle().catch(() => {})
      for (const buffer of current ? [...behind.release(), current] : behind.release())
        if (spare.length < BUFFERS_KEPT) spare.push(buffer)
      current = undefined
      direct?.[Symbol.dispose]()
      file[Symbol.dispose]()
    },
  }
}

// Writes around the page cache (O_DIRECT), where the file system allows it: that takes a fraction of the processor time
// (`npm run bench -- backups`, rows `first` and `restore`), and does not evict what games have in memory.
import { constants, write } from 'node:fs'
import { promisify } from 'node:util'
import { type Descriptor, openDescriptor } from '../kit/files/descriptor.ts'
import { hasCode } from '../kit/files/errno.ts'
import { createWorkGroup } from '../kit/waiting/work-group.ts'

/** What direct writes are a multiple of, on any disk that is in use. */
export const UNIT_BYTES = 4096
/** Worth writing from where they stand, if that is possible, and not gathering with what comes before and after. */
export const LARGE_WRITE_BYTES = 1024 * 1024

const writeAsync = promisify(write)

/** Numbers, for another thread: whoever has opened them closes them when that is done. */
export interface DirectTarget {
  fd: number
  /** Of the same file, or -1 where it is written through the cache. */
  directFd: number
}

/** Undefined where the system or the file system knows of no such thing, or there is no descriptor left for it. */
export function openDirect({ fd }: Descriptor): Descriptor | undefined {
  if (constants.O_DIRECT === undefined) return undefined
  try {
    return openDescriptor(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_DIRECT)
  } catch (error) {
    if (!hasCode(error, 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOENT', 'EMFILE', 'ENFILE')) throw error
    return undefined
  }
}

/** `bytes` begin where an `alignedBuffer` does, `offset` at a multiple of a page. The end may have any length. */
export async function writeAround({ fd, directFd }: DirectTarget, bytes: Uint8Array, offset: number): Promise<void> {
  const whole = directFd < 0 ? 0 : wholeUnits(bytes.length)
  let done = 0
  try {
    if (whole > 0) done = (await writeAsync(directFd, bytes, 0, whole, offset)).bytesWritten
  } catch (error) {
    // What else a file system asks for besides alignment to a page.
    if (!hasCode(error, 'EINVAL')) throw error
  }
  while (done < bytes.length)
    done += (await writeAsync(fd, bytes, done, bytes.length - done, offset + done)).bytesWritten
}

const WASM_PAGE_BYTES = 64 * 1024
const aligned = new WeakSet<ArrayBufferLike>()

/**
 * Memory that begins at a page, as O_DIRECT needs it. Node cannot ask for that, but WebAssembly's memory does. (A
 * resizable ArrayBuffer begins at a page too, but each access costs several times as much.)
 */
export function alignedBuffer(bytes: number): Buffer {
  return Buffer.from(mapped(bytes, false) ?? new ArrayBuffer(bytes), 0, bytes)
}

/** As `alignedBuffer`, for more than one thread; it may be a little larger. */
export function alignedSharedBuffer(bytes: number): SharedArrayBuffer {
  return (mapped(bytes, true) as SharedArrayBuffer | undefined) ?? new SharedArrayBuffer(bytes)
}

/** It takes gigabytes of addresses, though not of memory. There is none where those are too few, or no WebAssembly is. */
function mapped(bytes: number, shared: boolean): ArrayBuffer | undefined {
  if (typeof WebAssembly === 'undefined') return undefined
  const pages = Math.ceil(bytes / WASM_PAGE_BYTES)
  try {
    const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages, shared })
    aligned.add(buffer)
    return buffer
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return undefined
  }
}

/** Whether the bytes begin at a page of what this thread got from one of the two above. */
export function isAligned({ buffer, byteOffset }: Uint8Array): boolean {
  return byteOffset % UNIT_BYTES === 0 && aligned.has(buffer)
}

/** How much of them can be written around the cache. */
export const wholeUnits = (length: number) => length - (length % UNIT_BYTES)

export interface WriteBehind {
  /** One that nobody is writing from, once there is one. */
  take(): Promise<Buffer>
  /** The buffer is free again when it is written. What fails is met by `settle`. */
  start(buffer: Buffer, written: Promise<void>): void
  /** Throws what has failed, if anything has, without waiting. */
  check(): void
  /** Nothing is being written once it resolves or rejects. A failure is told once. */
  settle(): Promise<void>
  /** Those that are free, for somebody else. */
  release(): Buffer[]
}

/** A few buffers in turn: one is filled while the others are written. */
export function createWriteBehind(count: number, make: () => Buffer): WriteBehind {
  const writing = createWorkGroup(count)
  const free: Buffer[] = []
  let made = 0

  return {
    async take() {
      for (;;) {
        const buffer = free.pop()
        if (buffer) return buffer
        if (made < count) {
          made++
          return make()
        }
        await writing.next()
      }
    },
    start(buffer, written) {
      writing.start(written.finally(() => free.push(buffer)))
    },
    check: writing.check,
    settle: writing.drain,
    release: () => free.splice(0),
  }
}

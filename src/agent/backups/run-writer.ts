// Writes the blocks of large files around the page cache: neighbours together, one run while the next is put together. That
// takes a fraction of the time of writing through the cache, and leaves in memory what games have there.
import { constants, openSync, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'
import { alignedBuffer } from '../../kit/aligned.ts'
import { hasCode } from '../../kit/errno.ts'

const RUN_BYTES = 1024 * 1024
const RUNS_AT_ONCE = 2
/** What direct writes are a multiple of, on any disk that is in use. */
const UNIT_BYTES = 4096

const writeAsync = promisify(write)

export interface BlockTarget {
  fd: number
  /** Of the same file, or -1 where it is written through the cache. */
  directFd: number
}

export interface RunWriter {
  /** `bytes` may change once it has returned, or what it returned has resolved. Blocks of one file follow each other in most cases; any order is right. */
  add(target: BlockTarget, bytes: Uint8Array, offset: number): Promise<void> | undefined
  /** Everything is written once it resolves. Whether it resolves or rejects, no descriptor is in use any more. */
  finish(): Promise<void>
}

interface Run {
  target: BlockTarget
  buffer: Buffer
  offset: number
  length: number
}

/** -1 where the file system knows of no such thing, or there is no descriptor left for it. */
export function openDirect(fd: number): number {
  if (constants.O_DIRECT === undefined) return -1
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_DIRECT)
  } catch (error) {
    if (!hasCode(error, 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOENT', 'EMFILE', 'ENFILE')) throw error
    return -1
  }
}

export function createRunWriter(): RunWriter {
  const free = Array.from({ length: RUNS_AT_ONCE }, () => alignedBuffer(RUN_BYTES))
  const writing = new Set<Promise<void>>()
  let run: Run | undefined
  let failure: { error: unknown } | undefined

  function start({ target, buffer, offset, length }: Run): void {
    const written = writeRun(target, buffer.subarray(0, length), offset)
      .catch((error) => {
        failure ??= { error }
      })
      .finally(() => {
        writing.delete(written)
        free.push(buffer)
      })
    writing.add(written)
  }

  async function begin(target: BlockTarget, bytes: Uint8Array, offset: number): Promise<void> {
    let buffer = free.pop()
    while (!buffer) {
      await Promise.race(writing)
      buffer = free.pop()
    }
    run = { target, buffer, offset, length: 0 }
    append(run, bytes)
  }

  function append(to: Run, bytes: Uint8Array): void {
    to.buffer.set(bytes, to.length)
    to.length += bytes.length
  }

  return {
    add(target, bytes, offset) {
      if (target.directFd < 0) {
        writeAll(target.fd, bytes, offset)
        return undefined
      }
      if (
        run?.target.fd === target.fd &&
        run.offset + run.length === offset &&
        run.length + bytes.length <= RUN_BYTES
      ) {
        append(run, bytes)
        return undefined
      }
      if (run) start(run)
      run = undefined
      return begin(target, bytes, offset)
    },
    async finish() {
      if (run) start(run)
      run = undefined
      await Promise.all(writing)
      const failed = failure
      failure = undefined
      if (failed) throw failed.error
    },
  }
}

async function writeRun({ fd, directFd }: BlockTarget, bytes: Buffer, offset: number): Promise<void> {
  const whole = bytes.length - (bytes.length % UNIT_BYTES)
  let done = 0
  try {
    if (whole > 0) done = (await writeAsync(directFd, bytes, 0, whole, offset)).bytesWritten
  } catch (error) {
    // What else a file system asks for.
    if (!hasCode(error, 'EINVAL')) throw error
  }
  if (done < bytes.length) writeAll(fd, bytes.subarray(done), offset + done)
}

function writeAll(fd: number, bytes: Uint8Array, offset: number): void {
  let done = 0
  while (done < bytes.length) done += writeSync(fd, bytes, done, bytes.length - done, offset + done)
}

// Writes the blocks of large files bypassing the page cache: adjacent blocks together, one run while the next is
// assembled.
import { alignedBuffer, createWriteBehind, type DirectTarget, writeAround } from '../../../blobs/direct-io.ts'
import { asBuffer } from '../../../kit/bytes.ts'
import { writeFully } from '../../../kit/files/write-fully.ts'

const RUN_BYTES = 1024 * 1024
const RUNS_AT_ONCE = 2

export interface RunWriter {
  /**
   * Where bytes for that place would stand if they were added now, for whoever can put them there straight away: they need
   * not be copied then. Undefined where there is no room. Good until the next call.
   */
  room(target: DirectTarget, offset: number, length: number): Buffer | undefined
  /**
   * `bytes` may change once it has returned, or what it returned has resolved. Blocks of one file follow each other in
   * most cases; any order is right.
   */
  add(target: DirectTarget, bytes: Uint8Array, offset: number): Promise<void> | undefined
  /** Everything is written once it resolves. Whether it resolves or rejects, no descriptor is in use any more. */
  finish(): Promise<void>
}

interface Run {
  target: DirectTarget
  buffer: Buffer
  offset: number
  length: number
}

export function createRunWriter(): RunWriter {
  const behind = createWriteBehind(RUNS_AT_ONCE, () => alignedBuffer(RUN_BYTES))
  let run: Run | undefined

  function flush(): void {
    if (run) behind.start(run.buffer, writeAround(run.target, run.buffer.subarray(0, run.length), run.offset))
    run = undefined
  }

  async function begin(target: DirectTarget, bytes: Uint8Array, offset: number): Promise<void> {
    run = { target, buffer: await behind.take(), offset, length: 0 }
    append(run, bytes)
  }

  function append(to: Run, bytes: Uint8Array): void {
    const isThere = bytes.buffer === to.buffer.buffer && bytes.byteOffset === to.buffer.byteOffset + to.length
    // Not `set`, which takes shared memory byte by byte.
    if (!isThere) asBuffer(bytes).copy(to.buffer, to.length)
    to.length += bytes.length
  }

  /** The run, if bytes for that place follow what is in it and have room. */
  function runBefore({ fd }: DirectTarget, offset: number, bytes: number): Run | undefined {
    if (run?.target.fd !== fd || run.offset + run.length !== offset) return undefined
    return run.length + bytes <= RUN_BYTES ? run : undefined
  }

  return {
    room(target, offset, length) {
      const before = runBefore(target, offset, length)
      return before?.buffer.subarray(before.length, before.length + length)
    },
    add(target, bytes, offset) {
      if (target.directFd < 0) {
        // Waiting for another thread would take longer than writing.
        writeFully(target.fd, bytes, offset)
        return undefined
      }
      const before = runBefore(target, offset, bytes.length)
      if (before) {
        append(before, bytes)
        return undefined
      }
      flush()
      return begin(target, bytes, offset)
    },
    async finish() {
      flush()
      await behind.settle()
    },
  }
}

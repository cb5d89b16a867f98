// What the kernel says of memory: an engine does not always hear why it ended a container, and its control group is gone by then.
import { constants, readSync } from 'node:fs'
import { openDescriptor } from '../../../kit/files/descriptor.ts'

const RECORD_BYTES = 8192
/** The log is a ring of a fixed size; more than this of it is not looked through. */
const RECORDS_MAX = 50_000

/** Whether the kernel has ended a process of this container for its memory. False where its log is not ours to read. */
export function wasOutOfMemory(containerId: string): boolean {
  try {
    using log = openDescriptor('/dev/kmsg', constants.O_RDONLY | constants.O_NONBLOCK)
    const record = Buffer.allocUnsafe(RECORD_BYTES)
    for (let count = 0; count < RECORDS_MAX; count++) {
      const text = record.toString('latin1', 0, readRecord(log.fd, record))
      if (text.includes('oom_memcg=') && text.includes(containerId)) return true
    }
  } catch {
    // At its end, or not for us.
  }
  return false
}

/** One that was overwritten meanwhile is told of once; the next is there. */
function readRecord(fd: number, into: Buffer): number {
  try {
    return readSync(fd, into)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return 0
    throw error
  }
}

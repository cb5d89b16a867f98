// Writes all of it, or fails. A disk that fills up takes a part of a write without an error, and refuses only the next.
import { writeSync } from 'node:fs'

/** At the position, or where the descriptor stands. */
export function writeFully(fd: number, bytes: Uint8Array, position: number | null = null): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(fd, bytes, done, bytes.length - done, position === null ? null : position + done)
}

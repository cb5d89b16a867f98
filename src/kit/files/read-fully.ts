// Reads until there is enough, or nothing more.
import { readSync } from 'node:fs'

/** How many bytes there were. */
export function readFully(fd: number, target: Uint8Array, wanted: number, position: number): number {
  let done = 0
  while (done < wanted) {
    const got = readSync(fd, target, done, wanted - done, position + done)
    if (got === 0) break
    done += got
  }
  return done
}

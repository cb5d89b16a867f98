// Files of which nothing can be compressed or found twice.
import { randomFillSync } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const FILE_BYTES = 64 * 1024 * 1024
const BUFFER_BYTES = 4 * 1024 * 1024

export function fillWithRandom(folder: string, bytes: number): void {
  const buffer = Buffer.alloc(BUFFER_BYTES)
  for (let file = 0; file * FILE_BYTES < bytes; file++) {
    const fd = openSync(join(folder, `${file}.bin`), 'w')
    for (let at = 0; at < FILE_BYTES; at += BUFFER_BYTES) writeSync(fd, randomFillSync(buffer))
    closeSync(fd)
  }
}

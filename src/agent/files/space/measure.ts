// What a folder takes, looked up on the disk.
import { openSandbox } from '../sandbox/sandbox.ts'
import { type Amount, BLOCK_BYTES, diskBytes } from './amounts.ts'

/** Everything in the folder, and what it has grown by itself to name that much. */
export async function measureBeneath(folder: string, linked: Set<bigint>, signal?: AbortSignal): Promise<Amount> {
  const files = openSandbox(folder)
  let bytes = Math.max(0, diskBytes(files.lstat([])) - BLOCK_BYTES)
  let entries = 0
  for await (const { stats } of files.walk('/', { anyDepth: true, ...(signal ? { signal } : {}) })) {
    entries++
    if (!stats.isDirectory() && stats.nlink > 1n) {
      if (linked.has(stats.ino)) continue
      linked.add(stats.ino)
    }
    bytes += diskBytes(stats)
  }
  return { bytes, entries }
}

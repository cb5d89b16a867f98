// One file's bytes to another without passing them through JavaScript.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { hasDescriptorPaths } from './sandbox/addresses.ts'
import { addressOf, type Directory, lstatAt, type OpenFile, statsIfThere, unlinkAt } from './sandbox/directory.ts'
import { nameToDisk } from './sandbox/names.ts'
import { diskBytes, spaceOf } from './space/amounts.ts'
import { createHoleBudget, requireReadable } from './space/hole-budget.ts'

const LARGE_BYTES = 32n * 1024n * 1024n
/** Fewer holes are written out: starting `cp` for each of many small files would take longer than copying them. */
const MANY_HOLES_BYTES = 1024 * 1024

export interface CloneOptions {
  signal: AbortSignal | undefined
  /** Takes room for holes that are written out, which the original does not occupy. Fails where there is none. */
  takeRoom(bytes: number): Promise<void>
}

/**
 * Makes `name` in `folder`, which nobody else writes to, as a reflink where the file system can, else by a kernel copy.
 * A large file is left to `cp`, where there is one: it can be stopped half-way, it keeps holes, and it does not truncate
 * the file that it has just made, for which ext4 would write everything out before closing it. Returns the disk space
 * that the copy takes.
 */
export async function cloneFile(
  source: OpenFile,
  folder: Directory,
  name: string,
  { signal, takeRoom }: CloneOptions,
): Promise<number> {
  const holeBytes = Math.max(0, spaceOf(Number(source.stats.size)) - diskBytes(source.stats))
  const isForProcess = source.stats.size >= LARGE_BYTES || holeBytes >= MANY_HOLES_BYTES
  if (!isForProcess || !hasDescriptorPaths || !(await copiedByProcess(source, folder, name, signal))) {
    signal?.throwIfAborted()
    // Unlike cp, it writes the holes out, and cannot be stopped.
    requireReadable(createHoleBudget(), 'A file of it', source.stats)
    if (holeBytes > 0) await takeRoom(holeBytes)
    await copyFile(source.address, addressOf(folder, name), constants.COPYFILE_FICLONE)
  }
  // Some file systems report what a new file occupies only after a while.
  return Math.max(diskBytes(source.stats), diskBytes(lstatAt(folder, name)))
}

/** False when it cannot be done this way: the other way then says why, with a code. */
async function copiedByProcess(
  source: OpenFile,
  folder: Directory,
  name: string,
  signal?: AbortSignal,
): Promise<boolean> {
  if (typeof nameToDisk(name) !== 'string') return false
  const args = [
    '--reflink=auto',
    '--sparse=auto',
    '--preserve=mode',
    '--',
    '/proc/self/fd/3',
    `/proc/self/fd/4/${name}`,
  ]
  const child = spawn('cp', args, { stdio: ['ignore', 'ignore', 'ignore', source.fd, folder.fd] })
  const stop = () => child.kill('SIGKILL')
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const [status] = await once(child, 'exit')
    if (status === 0) return true
  } catch {
    // There is no cp.
  } finally {
    signal?.removeEventListener('abort', stop)
  }
  if (statsIfThere(folder, name)) unlinkAt(folder, name)
  return false
}

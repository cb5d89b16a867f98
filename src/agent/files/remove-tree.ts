// Removing a whole tree for good. Unlinking goes through the thread pool, since for a file of many gigabytes it can take
// a disk long enough to be felt.
import type { BigIntStats } from 'node:fs'
import { readdir, unlink } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../../kit/errno.ts'
import { addressOf, type Directory, rmdirAt, statsIfThere } from './directory.ts'
import { nameFromLatin1 } from './names.ts'
import { createMountCheck, openIfStillThere } from './walk.ts'

const AT_ONCE = 32
const MAX_DEPTH = 512

export interface RemoveOptions {
  signal?: AbortSignal
  /** Rests as long as it works, so that nobody notices it. */
  isRelaxed?: boolean
  onRemoved?: (stats: BigIntStats) => void
}

interface Removal extends RemoveOptions {
  mounts: ReturnType<typeof createMountCheck>
}

/** Removes what has the name, with all it holds. Leaves mount points alone and says so by false. */
export async function removeTree(parent: Directory, name: string, options: RemoveOptions = {}): Promise<boolean> {
  const stats = statsIfThere(parent, name)
  if (!stats) return true
  const removal = { ...options, mounts: createMountCheck(parent) }
  return stats.isDirectory()
    ? await removeDirectory(parent, name, stats, removal, 0)
    : await removeFile(parent, name, stats, removal)
}

async function removeDirectory(
  parent: Directory,
  name: string,
  stats: BigIntStats,
  removal: Removal,
  depth: number,
): Promise<boolean> {
  if (depth >= MAX_DEPTH || removal.mounts.isCrossing(parent, name, stats)) return false
  let isEmpty = true
  const opened = openIfStillThere(parent, name)
  if (opened) {
    using directory = opened
    const names = await readdir(directory.address, { encoding: 'latin1' })
    for (let at = 0; at < names.length; at += AT_ONCE) {
      const startedAt = performance.now()
      const group = names.slice(at, at + AT_ONCE).map(nameFromLatin1)
      if (!(await removeGroup(directory, group, removal, depth))) isEmpty = false
      removal.signal?.throwIfAborted()
      if (removal.isRelaxed) await delay(performance.now() - startedAt)
    }
  }
  return isEmpty && removedUnlessHeld(() => rmdirAt(parent, name))
}

async function removeGroup(directory: Directory, names: string[], removal: Removal, depth: number): Promise<boolean> {
  const children = names.map((name) => ({ name, stats: statsIfThere(directory, name) }))
  const files = children.map(({ name, stats }) =>
    stats && !stats.isDirectory() ? removeFile(directory, name, stats, removal) : true,
  )
  let isEmpty = (await Promise.all(files)).every(Boolean)
  for (const { name, stats } of children)
    if (stats?.isDirectory() && !(await removeDirectory(directory, name, stats, removal, depth + 1))) isEmpty = false
  return isEmpty
}

async function removeFile(parent: Directory, name: string, stats: BigIntStats, removal: Removal): Promise<boolean> {
  try {
    await unlink(addressOf(parent, name))
    removal.onRemoved?.(stats)
  } catch (error) {
    if (hasCode(error, 'EBUSY', 'EPERM', 'EISDIR')) return false
    if (!hasCode(error, 'ENOENT')) throw error
  }
  return true
}

function removedUnlessHeld(remove: () => void): boolean {
  try {
    remove()
  } catch (error) {
    if (hasCode(error, 'ENOTEMPTY', 'EBUSY', 'EPERM')) return false
    if (!hasCode(error, 'ENOENT')) throw error
  }
  return true
}

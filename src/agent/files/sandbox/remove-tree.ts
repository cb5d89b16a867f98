// Removing a whole tree for good, however deep it is. Unlinking goes through the thread pool, since for a file of many
// gigabytes it can take a disk long enough to be felt.
import { type BigIntStats, fchmodSync, readdirSync } from 'node:fs'
import { readdir, unlink } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../../../kit/files/errno.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { type Descent, openDescent } from './descent.ts'
import { addressOf, type Directory, rmdirAt, statsIfThere } from './directory.ts'
import { nameFromLatin1 } from './names.ts'
import { createMountCheck } from './walk.ts'

const AT_ONCE = 32
/** Read, write and enter, for the owner. */
const OWN_BITS = 0o700
/** A directory that takes no more than this is read at once, which costs less than a round through the thread pool. */
const SMALL_DIRECTORY_BYTES = 64n * 1024n

export interface RemoveOptions {
  /** As for `createTurns`. */
  share: string
  signal?: AbortSignal
  /** Rests as long as it works, so that nobody notices it. */
  isRelaxed?: boolean
  /** Of files and directories, each with what it was before. */
  onRemoved?: (stats: BigIntStats) => void
}

interface Removal extends RemoveOptions {
  mounts: ReturnType<typeof createMountCheck>
}

interface Child {
  name: string
  stats: BigIntStats
}

/** A directory on its way out. */
interface Level extends Child {
  /** Not looked at yet, the next last. */
  names: string[]
  /** Directories among those that were looked at, still to be removed. */
  directories: Child[]
  /** Whether nothing in it was left alone. */
  isEmpty: boolean
}

/** Removes what has the name, with all it holds. Leaves mount points alone and says so by false. */
export async function removeTree(parent: Directory, name: string, options: RemoveOptions): Promise<boolean> {
  const stats = statsIfThere(parent, name)
  if (!stats) return true
  if (!stats.isDirectory()) return await removeFile(parent, { name, stats }, options)
  const removal = { ...options, mounts: createMountCheck(parent) }
  if (removal.mounts.isCrossing(parent, name, stats)) return false
  using descent = openDescent(parent)
  return await removeDirectory(descent, { name, stats }, removal)
}

async function removeDirectory(descent: Descent, first: Child, removal: Removal): Promise<boolean> {
  const levels: Level[] = []
  const top = { isEmpty: true }
  const enter = async (child: Child) => {
    if (removal.mounts.isCrossing(descent.current, child.name, child.stats)) above().isEmpty = false
    else if (descent.enter(child.name)) levels.push(await openLevel(descent.current, child))
  }
  const above = () => levels.at(-1) ?? top
  const turn = createTurns(removal.share, removal.signal)
  await enter(first)
  for (let level = levels.at(-1); level; level = levels.at(-1)) {
    if (turn.due()) await turn.take()
    const next = level.directories.pop()
    if (next) await enter(next)
    else if (level.names.length > 0) await removeGroup(descent.current, level, removal)
    else if (!leave(descent, levels, removal)) above().isEmpty = false
  }
  return top.isEmpty
}

async function openLevel(directory: Directory, child: Child): Promise<Level> {
  makeWritable(directory, child.stats)
  const { address } = directory
  const isSmall = child.stats.size <= SMALL_DIRECTORY_BYTES
  const names = isSmall ? readdirSync(address, { encoding: 'latin1' }) : await readdir(address, { encoding: 'latin1' })
  return { ...child, names: names.reverse(), directories: [], isEmpty: true }
}

/** One that its owner may not write to holds on to what is in it, unless the service is root. */
function makeWritable({ fd }: Directory, { mode }: BigIntStats): void {
  if ((Number(mode) & OWN_BITS) === OWN_BITS) return
  try {
    fchmodSync(fd, Number(mode) | OWN_BITS)
  } catch {
    // It belongs to somebody else: then what is in it says whether it can go.
  }
}

/** The next few names: files go now, directories are noted. */
async function removeGroup(directory: Directory, level: Level, removal: Removal): Promise<void> {
  const startedAt = performance.now()
  const children = level.names.splice(-AT_ONCE).flatMap((latin1) => {
    const name = nameFromLatin1(latin1)
    const stats = statsIfThere(directory, name)
    return stats ? [{ name, stats }] : []
  })
  level.directories = children.filter(({ stats }) => stats.isDirectory())
  const files = children.filter(({ stats }) => !stats.isDirectory())
  if (files.length === 0) return
  const removed = await Promise.all(files.map((file) => removeFile(directory, file, removal)))
  if (!removed.every(Boolean)) level.isEmpty = false
  removal.signal?.throwIfAborted()
  if (removal.isRelaxed) await delay(performance.now() - startedAt)
}

/** Back to the directory above, from which the one that is done with is removed. */
function leave(descent: Descent, levels: Level[], removal: Removal): boolean {
  const count = descent.leave()
  const [done] = levels.splice(-count)
  // Where the way back was cut off, somebody has moved a part of the tree, and it is not ours to remove any more.
  if (!done || count > 1 || !done.isEmpty) return false
  return removedUnlessHeld(() => rmdirAt(descent.current, done.name), removal, done.stats)
}

async function removeFile(parent: Directory, { name, stats }: Child, removal: RemoveOptions): Promise<boolean> {
  try {
    await unlink(addressOf(parent, name))
    removal.onRemoved?.(stats)
  } catch (error) {
    if (hasCode(error, 'EBUSY', 'EPERM', 'EISDIR')) return false
    if (!hasCode(error, 'ENOENT')) throw error
  }
  return true
}

function removedUnlessHeld(remove: () => void, removal: Removal, stats: BigIntStats): boolean {
  try {
    remove()
    removal.onRemoved?.(stats)
  } catch (error) {
    if (hasCode(error, 'ENOTEMPTY', 'EBUSY', 'EPERM')) return false
    if (!hasCode(error, 'ENOENT')) throw error
  }
  return true
}

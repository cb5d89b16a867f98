// Makes the output of a restore durable: each file by itself if there are few, else the whole file system at once.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { forEachAtOnce } from '../../../kit/waiting/work-group.ts'
import { addressOf, type Directory, fsyncDirectory, fsyncFile, openChild } from '../../files/sandbox/directory.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import { OPEN_FILE } from '../tree/unchanged.ts'
import { isGone } from './restore-journal.ts'
import { stagedFolder } from './restore-staged.ts'

/** Above this, one sync of the file system is cheaper than one for every path. */
export const SYNCED_ONE_BY_ONE = 128
/** A file system makes what comes together durable in one go. */
const SYNCED_TOGETHER = 16

/** Of something that is staged. */
export interface SyncedName {
  folder: number | undefined
  name: string
}

/** What is in staging: folders too, since each holds the names of what is in it. */
export async function syncStaged(staging: Directory, names: readonly SyncedName[]): Promise<void> {
  await forEachAtOnce(names, SYNCED_TOGETHER, async ({ folder, name }) => {
    if (folder === undefined) return await syncAddress(addressOf(staging, name))
    using parent = openChild(staging, stagedFolder(folder))
    await syncAddress(addressOf(parent, name))
  })
}

/** A symlink has nothing of its own to sync: it is part of its directory. */
async function syncAddress(address: string | Buffer): Promise<void> {
  let opened: Descriptor
  try {
    opened = openDescriptor(address, OPEN_FILE)
  } catch (error) {
    if (hasCode(error, 'ELOOP')) return
    throw error
  }
  using file = opened
  await fsyncFile(file)
}

/** What is gone by now needs no sync, but that it is gone does: then the nearest directory above it is meant. */
export async function syncPaths(sandbox: Sandbox, paths: string[][]): Promise<void> {
  await forEachAtOnce(paths, SYNCED_TOGETHER, async (path) => {
    for (let depth = path.length, isSynced = false; !isSynced; depth--)
      isSynced = depth === 0 ? await syncTop(sandbox) : await isSyncedThere(sandbox, path.slice(0, depth))
  })
}

async function syncTop(sandbox: Sandbox): Promise<true> {
  using top = sandbox.openDirectory([])
  await fsyncDirectory(top)
  return true
}

async function isSyncedThere(sandbox: Sandbox, path: string[]): Promise<boolean> {
  try {
    using place = sandbox.openPlace(path)
    await syncAddress(addressOf(place.parent, place.name))
    return true
  } catch (error) {
    if (!isGone(error)) throw error
    return false
  }
}

/** syncfs(2), which Node lacks. The directory is named by our descriptor of it. */
export async function syncFileSystem(directory: Directory): Promise<void> {
  await promisify(execFile)('sync', ['-f', `/proc/${process.pid}/fd/${directory.fd}`])
}

/**
 * Ahead of the last one, for what is there by now. That it could not begin matters to nobody. An error of the disk does: the kernel tells
 * of it once, and the last one may not hear of it.
 */
export async function syncEarly(directory: Directory): Promise<void> {
  try {
    await syncFileSystem(directory)
  } catch (error) {
    const hasBegun = typeof (error as { code?: unknown }).code !== 'string'
    if (hasBegun) throw error
  }
}

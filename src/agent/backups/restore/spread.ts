// Without a journal, ext4 gives the inode of a deleted file to no new one for some minutes, and for each new file it looks at all of those
// that wait near its directory. A restore that comes after a deletion would take several times as long (docs/backup-performance.md).
// So what is made in staging is spread over the disk: each restore has a part of it to itself, and leaves it for another where it turns
// out to be a bad one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fstatSync } from 'node:fs'
import { type Directory, mkdirAt, openChild, renameAt, rmdirAt } from '../../files/sandbox/directory.ts'
import { temporaryName } from '../../files/sandbox/staging.ts'

/** Judged after so many. */
const JUDGED_FILES = 1024
/** In the kernel: a file takes 15 µs where nothing is in its way, and up to 400 where 8,000 were deleted before. */
const FILE_US = 40
const BYTE_US = 0.002

/** By their numbers on the disk: one that was marked stays so. */
const marked = new Set<string>()

/**
 * Marks the directory as the top of a hierarchy: ext4 then places each directory in it where there is room for many files. Where there
 * is no such mark, or no `chattr`, nothing happens.
 */
export async function spreadWithin({ fd }: Pick<Directory, 'fd'>): Promise<void> {
  const { dev, ino } = fstatSync(fd, { bigint: true })
  const number = `${dev} ${ino}`
  if (marked.has(number)) return
  marked.add(number)
  try {
    await once(spawn('chattr', ['+T', '/proc/self/fd/3/.'], { stdio: ['ignore', 'ignore', 'ignore', fd] }), 'exit')
  } catch {
    // There is no chattr.
  }
}

export interface Places extends Disposable {
  /** As `mkdirAt`, for a directory in which many files may be made: where others were made quickly before. */
  make(parent: Directory, name: string): void
  noteMade(files: number, bytes: number): void
}

/**
 * For one restore. `root` is marked by `spreadWithin`. The kernel's time is that of the whole process: what else it does may make a
 * restore move without need, which costs a few calls.
 */
export function createPlaces(root: Directory, kernelUs = () => process.cpuUsage().system): Places {
  /** Directories are made in here first, since each stays near the one that it was made in. */
  let elsewhere: string | undefined
  let [files, expectedUs, sinceUs] = [0, 0, kernelUs()]

  function leave(): void {
    if (elsewhere === undefined) return
    try {
      rmdirAt(root, elsewhere)
    } catch {
      // The next start takes it away. What was restored is not undone for it.
    }
    elsewhere = undefined
  }

  function moveOn(): void {
    leave()
    const name = temporaryName()
    mkdirAt(root, name, 0o700)
    elsewhere = name
  }

  return {
    make(parent, name) {
      if (elsewhere === undefined) return mkdirAt(parent, name, 0o700)
      using directory = openChild(root, elsewhere)
      mkdirAt(directory, name, 0o700)
      renameAt(directory, name, parent, name)
    },
    noteMade(count, bytes) {
      files += count
      expectedUs += count * FILE_US + bytes * BYTE_US
      if (files < JUDGED_FILES) return
      const nowUs = kernelUs()
      if (nowUs - sinceUs > expectedUs) moveOn()
      files = 0
      expectedUs = 0
      sinceUs = nowUs
    },
    [Symbol.dispose]: leave,
  }
}

// Without a journal, ext4 gives the inode of a deleted file to no new one for some minutes, and for each new file it looks at all of those
// that wait near its directory. A restore that comes after a deletion would spend a third of its time on that
// (docs/backup-performance.md). So what is made in staging is spread over the disk: each restore has a part of it to itself.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fstatSync } from 'node:fs'
import type { Directory } from '../../files/sandbox/directory.ts'

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

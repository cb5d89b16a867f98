// Long work resumed after a crash must know what it has already put in place, or it would mistake its own file for
// somebody else's. A note of what will be where is on disk before the file is in place; it counts only while that very
// file is there.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../kit/files/errno.ts'
import { etagOf } from '../reading/entries.ts'
import { fsyncDirectory, openOwnFolder } from '../sandbox/directory.ts'
import { parsePath } from '../sandbox/paths.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

/** Ids of tasks come from control; what is not a plain name is not made one. */
const ID = /^[\w-]{1,100}$/

export interface Placements {
  /** Where the file is that this work has put in its place, if it is still there. */
  find(workId: string): string | undefined
  /** Resolves once the note is on disk. */
  note(workId: string, path: string, etag: string): Promise<void>
  /** Forgets what was noted before then. */
  expire(before: number): void
}

export function createPlacements(folder: string, files: Sandbox): Placements {
  const fileOf = (workId: string) => join(folder, `${workId}.json`)
  return {
    find(workId) {
      const noted = ID.test(workId) ? read(fileOf(workId)) : undefined
      const stats = noted && files.lstatIfThere(parsePath(noted.path))
      return stats && etagOf(stats) === noted.etag ? noted.path : undefined
    },
    async note(workId, path, etag) {
      if (!ID.test(workId)) return
      using opened = openOwnFolder(folder)
      writeFileSync(`${fileOf(workId)}.new`, JSON.stringify({ path, etag }), { flush: true, mode: 0o600 })
      await rename(`${fileOf(workId)}.new`, fileOf(workId))
      await fsyncDirectory(opened)
    },
    expire(before) {
      for (const name of namesIn(folder))
        if (statSync(join(folder, name)).mtimeMs < before) rmSync(join(folder, name), { force: true })
    },
  }
}

function read(file: string): { path: string; etag: string } | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as { path: string; etag: string }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}

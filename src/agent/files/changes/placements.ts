// Long work resumed after a crash must know what it has already put in place, or it would mistake its own file for
// somebody else's. A note of what will be where is on disk before the file is in place; it counts only while that very
// file is there.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileEntry } from '../../../contract/agent/agent-files.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { etagOf } from '../reading/entries.ts'
import { fsyncDirectory, openOwnFolder } from '../sandbox/directory.ts'
import { parsePath } from '../sandbox/paths.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

/** Ids of tasks come from control; what is not a plain name is not made one. */
export const isWorkId = (workId: string) => /^[\w-]{1,100}$/.test(workId)

export interface Placements {
  /** Where the file is that this work has put in its place, if it is still there. */
  find(workId: string): string | undefined
  /** Resolves once the note is on disk. */
  note(workId: string, path: string, etag: string): Promise<void>
  /** What this work has answered, if all that it unpacked is in its place. */
  resultOf(workId: string): FileEntry | undefined
  /** Resolves once the note is on disk. */
  noteResult(workId: string, result: FileEntry): Promise<void>
  /** Forgets what was noted before then. */
  expire(before: number): void
}

export function createPlacements(folder: string, files: Sandbox): Placements {
  const fileOf = (workId: string) => join(folder, `${workId}.json`)
  const noted = (workId: string) => (isWorkId(workId) ? read(fileOf(workId)) : undefined)

  async function write(workId: string, note: Note): Promise<void> {
    if (!isWorkId(workId)) return
    using opened = openOwnFolder(folder)
    writeFileSync(`${fileOf(workId)}.new`, JSON.stringify(note), { flush: true, mode: 0o600 })
    await rename(`${fileOf(workId)}.new`, fileOf(workId))
    await fsyncDirectory(opened)
  }

  return {
    find(workId) {
      const { path, etag } = noted(workId) ?? {}
      const stats = path === undefined ? undefined : files.lstatIfThere(parsePath(path))
      return stats && etagOf(stats) === etag ? path : undefined
    },
    note: (workId, path, etag) => write(workId, { path, etag }),
    resultOf: (workId) => noted(workId)?.result,
    noteResult: (workId, result) => write(workId, { result }),
    expire(before) {
      for (const name of namesIn(folder))
        if (statSync(join(folder, name)).mtimeMs < before) rmSync(join(folder, name), { force: true })
    },
  }
}

interface Note {
  path?: string
  etag?: string
  result?: FileEntry
}

function read(file: string): Note | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Note
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

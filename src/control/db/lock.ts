// One process per data directory. The lock is SQLite's own file lock, which the system releases when the process dies,
// however it dies: there is no stale lock to clean up.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeDirectories } from '../../kit/files/make-directories.ts'
import { StartFault } from '../../kit/start-fault.ts'

const SQLITE_BUSY = 5

export class DataDirInUse extends Error {}

/** Makes the directory if there is none. */
export function lockDataDir(dataDir: string): { release(): void } {
  const holderFile = join(dataDir, 'gamekeeper.pid')
  let lock: DatabaseSync | undefined
  try {
    makeDirectories(dataDir, 0o700)
    lock = new DatabaseSync(join(dataDir, 'gamekeeper.lock'), { timeout: 0 })
    lock.exec('pragma locking_mode = exclusive; begin exclusive')
    writeFileSync(holderFile, `${process.pid}\n`)
  } catch (error) {
    lock?.close()
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY)
      throw new DataDirInUse(`The data directory ${dataDir} is in use by another Gamekeeper${holder(holderFile)}.`)
    throw unusable(dataDir, error)
  }
  return { release: () => lock.close() }
}

function unusable(dataDir: string, error: unknown): StartFault {
  const { code, errstr } = error as { code?: string; errstr?: string }
  const remedy = 'Let the user that runs Gamekeeper write there, or set GAMEKEEPER_DATA_DIR.'
  return new StartFault(`The data directory ${dataDir} cannot be used (${errstr ?? code}). ${remedy}`, { cause: error })
}

function holder(file: string): string {
  try {
    return ` (process ${readFileSync(file, 'utf8').trim()})`
  } catch {
    return ''
  }
}

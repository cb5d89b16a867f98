// One process per data directory. The lock is SQLite's own file lock, which the system lets go of when the process
// dies, however it dies: there is no stale lock to clean up.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

const SQLITE_BUSY = 5

export class DataDirInUse extends Error {}

export function lockDataDir(dataDir: string): { release(): void } {
  const holderFile = join(dataDir, 'gamekeeper.pid')
  const lock = new DatabaseSync(join(dataDir, 'gamekeeper.lock'), { timeout: 0 })
  try {
    lock.exec('pragma locking_mode = exclusive; begin exclusive')
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error
    throw new DataDirInUse(`The data directory ${dataDir} is in use by another Gamekeeper${holder(holderFile)}.`)
  }
  writeFileSync(holderFile, `${process.pid}\n`)
  return { release: () => lock.close() }
}

function holder(file: string): string {
  try {
    return ` (process ${readFileSync(file, 'utf8').trim()})`
  } catch {
    return ''
  }
}

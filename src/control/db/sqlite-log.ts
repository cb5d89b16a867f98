// SQLite's log (WAL), synced in another thread: a sync takes milliseconds, for which the thread that answers everybody would
// stand still. Those who commit while one sync is under way share the next.
import { fdatasync } from 'node:fs'
import { promisify } from 'node:util'
import { type Descriptor, openDescriptor } from '../../kit/descriptor.ts'

const fdatasyncAsync = promisify(fdatasync)

export interface SqliteLog extends Disposable {
  /** Resolves once everything that was committed before the call is on disk. */
  sync(): Promise<void>
  /** Whether a sync has failed: the system may have dropped what it could not write, and a later sync would not tell. */
  isBroken(): boolean
  /** The log is empty now, and all of it in the database and on disk. */
  emptied(): void
}

/** SQLite makes the file at the first use of the database, and removes it when the last connection is closed. */
export function openSqliteLog(path: string): SqliteLog {
  let file: Descriptor | undefined
  let isBroken = false
  let syncing: Promise<void> | undefined
  let following: Promise<void> | undefined

  async function syncOnce(): Promise<void> {
    try {
      if (isBroken) throw Object.assign(new Error('EIO: the log of the database is not on disk'), { code: 'EIO' })
      file ??= openDescriptor(path, 'r')
      await file.use(fdatasyncAsync)
    } catch (error) {
      isBroken = true
      throw error
    } finally {
      syncing = undefined
    }
  }

  return {
    sync() {
      if (!syncing) {
        syncing = syncOnce()
        return syncing
      }
      following ??= syncing
        .catch(() => {})
        .then(() => {
          following = undefined
          syncing = syncOnce()
          return syncing
        })
      return following
    },
    isBroken: () => isBroken,
    emptied() {
      isBroken = false
    },
    [Symbol.dispose]: () => file?.[Symbol.dispose](),
  }
}

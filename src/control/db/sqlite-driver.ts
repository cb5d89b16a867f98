// Kysely's driver for SQLite with two differences. What was written is on disk before whoever wrote it goes on, but the
// connection is free for the next before that, so that all who write at the same time share one sync. And the connection
// is handed on in a later turn of the event loop once this one has lasted: otherwise a hundred transactions that wait for
// each other are one turn.
import { type Driver, type SqliteDatabase, SqliteDriver } from 'kysely'

const TURN_MS = 4

export interface LoggedDatabase extends SqliteDatabase {
  /** Whether anything was written since this was asked last. */
  takeWritten(): boolean
  /** Resolves once all that was committed is on disk. */
  sync(): Promise<void>
  /** After a sync that failed: makes sure of what was committed in another way, or throws. No transaction is open. */
  mend(): void
}

export function createSqliteDriver(open: () => LoggedDatabase): Driver {
  let database: LoggedDatabase | undefined
  const inner = new SqliteDriver({
    database: async () => {
      database = open()
      return database
    },
  })
  const turns = createHandover()
  return {
    init: () => inner.init(),
    async acquireConnection() {
      await turns.take()
      try {
        database?.mend()
        return await inner.acquireConnection()
      } catch (error) {
        turns.release()
        throw error
      }
    },
    async releaseConnection() {
      const isWritten = database?.takeWritten()
      await inner.releaseConnection()
      turns.release()
      if (isWritten) await database?.sync()
    },
    beginTransaction: (connection) => inner.beginTransaction(connection),
    commitTransaction: (connection) => inner.commitTransaction(connection),
    rollbackTransaction: (connection) => inner.rollbackTransaction(connection),
    destroy: () => inner.destroy(),
  }
}

/** A mutex, first come, first served, that is given to nobody else in a turn that has lasted since it was first taken. */
function createHandover() {
  const waiting: (() => void)[] = []
  let isTaken = false
  let isPutOff = false
  let turnBegan: number | undefined

  function isTurnSpent(): boolean {
    const now = performance.now()
    if (turnBegan === undefined) {
      turnBegan = now
      setImmediate(() => {
        turnBegan = undefined
      })
    }
    return now - turnBegan > TURN_MS
  }

  function handOn(): void {
    if (isTaken || isPutOff || waiting.length === 0) return
    if (isTurnSpent()) {
      isPutOff = true
      setImmediate(() => {
        isPutOff = false
        handOn()
      })
      return
    }
    isTaken = true
    waiting.shift()?.()
  }

  return {
    take(): Promise<void> {
      return new Promise((resolve) => {
        waiting.push(resolve)
        handOn()
      })
    },
    release(): void {
      isTaken = false
      handOn()
    },
  }
}

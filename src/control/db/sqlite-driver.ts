// Kysely's driver for SQLite with two differences. What was written is on disk before whoever wrote it goes on, but the
// connection is free for the next before that, so that all who write at the same time share one sync. And the connection
// is handed on in a later turn of the event loop once this one has lasted: otherwise a hundred transactions that wait for
// each other are one turn.
import { setImmediate as nextTurn } from 'node:timers/promises'
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
  const inner: Driver = new SqliteDriver({
    database: async () => {
      database = open()
      return database
    },
  })
  const isTurnSpent = createTurnClock()
  return {
    init: () => inner.init(),
    async acquireConnection() {
      const connection = await inner.acquireConnection()
      isTurnSpent()
      try {
        database?.mend()
      } catch (error) {
        await inner.releaseConnection(connection)
        throw error
      }
      return connection
    },
    async releaseConnection(connection) {
      const isWritten = database?.takeWritten()
      if (isTurnSpent()) await nextTurn()
      await inner.releaseConnection(connection)
      if (isWritten) await database?.sync()
    },
    beginTransaction: (connection, settings) => inner.beginTransaction(connection, settings),
    commitTransaction: (connection) => inner.commitTransaction(connection),
    rollbackTransaction: (connection) => inner.rollbackTransaction(connection),
    destroy: () => inner.destroy(),
  }
}

/** Tells whether this turn has lasted since it was first asked in it. */
function createTurnClock(): () => boolean {
  let began: number | undefined
  return () => {
    const now = performance.now()
    if (began === undefined) {
      began = now
      setImmediate(() => {
        began = undefined
      })
    }
    return now - began > TURN_MS
  }
}

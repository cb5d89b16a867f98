// Kysely's SQLite dialect speaks to an object with better-sqlite3's shape; this gives node:sqlite that shape.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import {
  type Dialect,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { Reader } from './prepare.ts'
import { createLogCopying, PAGES_AT_MOST } from './sqlite-copying.ts'
import { openWriteAheadLog } from './sqlite-log.ts'

const PREPARED_MAX = 500
/** What changes nothing by itself. */
const HARMLESS = /^(select|begin|commit|pragma)\b/i

/** `beforeEach` is called before each statement: any of them may commit something. */
export function sqliteDialect(path: string, beforeEach: () => void, openLog = openWriteAheadLog): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DurableDriver(() => openSqlite(path, beforeEach, openLog)),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

/** A change is durable before its caller goes on, but others have the connection while he waits for the disk. */
class DurableDriver extends SqliteDriver {
  readonly #opened: { sqlite?: OpenSqlite }

  constructor(open: () => OpenSqlite) {
    const opened: { sqlite?: OpenSqlite } = {}
    super({
      database: async () => {
        opened.sqlite = open()
        return opened.sqlite.database
      },
    })
    this.#opened = opened
  }

  /** Kysely hands over the connection, which its own driver does not declare; whoever wraps that driver needs it. */
  override async releaseConnection(...connection: []): Promise<void> {
    const hasChanged = this.#opened.sqlite?.takeChanged() ?? false
    await super.releaseConnection(...connection)
    if (hasChanged) await this.#opened.sqlite?.sync()
  }

  override async destroy(): Promise<void> {
    await this.#opened.sqlite?.endCopying()
    await super.destroy()
  }
}

/**
 * A second connection that only reads. In WAL it never waits for a writer. Taking the lock that a read needs costs more
 * than the read, so the reads of one turn of the event loop share it (`npm run bench -- api`). Whoever writes has to
 * `release` it first: then the next read sees what was written, and no reader keeps the log from being started over.
 */
export function openReader(path: string): Reader & { release(): void; close(): void } {
  let db: DatabaseSync | undefined
  let shared: { begin: StatementSync; end: StatementSync } | undefined
  let reading = false

  function begin(): void {
    shared?.begin.run()
    reading = true
    setImmediate(release)
  }

  function release(): void {
    if (!reading) return
    reading = false
    // An error may have ended it already.
    if (db?.isTransaction) shared?.end.run()
  }

  function open(): DatabaseSync {
    const opened = new DatabaseSync(path, { readOnly: true, timeout: 5000 })
    shared = { begin: opened.prepare('begin'), end: opened.prepare('commit') }
    return opened
  }

  return {
    prepare(sql) {
      // Opened at the first use: the file is there by then, and migrated.
      db ??= open()
      const statement = db.prepare(sql)
      statement.setReturnArrays(true)
      const rowOf = rowMaker(statement.columns().map(({ name }) => name))
      return (values) => {
        if (!reading) begin()
        const cells = statement.get(...values) as unknown as unknown[] | undefined
        return cells && rowOf(cells)
      }
    },
    release,
    close() {
      release()
      db?.close()
    },
  }
}

/**
 * Makes objects as this engine likes them: those that node:sqlite makes are slow to make and slow to read, and so are
 * those that grow by one field at a time. The names of the columns are our own.
 */
function rowMaker(columns: readonly string[]): (cells: readonly unknown[]) => Record<string, unknown> {
  const fields = columns.map((name, i) => `${JSON.stringify(name)}: cells[${i}]`)
  return new Function('cells', `return { ${fields.join(', ')} }`) as ReturnType<typeof rowMaker>
}

interface OpenSqlite {
  database: SqliteDatabase
  /** Whether anything may have been committed since this was asked last. */
  takeChanged(): boolean
  /** Once it resolves, everything that was committed before survives a power cut. */
  sync(): Promise<void>
  endCopying(): Promise<void>
}

function openSqlite(path: string, beforeEach: () => void, openLog: typeof openWriteAheadLog): OpenSqlite {
  const db = new DatabaseSync(path, { timeout: 5000 })
  const pragmas = [
    'journal_mode = wal',
    'synchronous = normal',
    'foreign_keys = on',
    'busy_timeout = 5000',
    `wal_autocheckpoint = ${PAGES_AT_MOST}`,
  ]
  for (const pragma of pragmas) db.exec(`pragma ${pragma}`)
  const log = openLog(`${path}-wal`, () => {
    beforeEach()
    copyLogInto(db)
  })
  const copying = createLogCopying(path)
  let isChanged = false
  const prepared = new Map<string, ReturnType<typeof shaped>>()

  function shape(sql: string): ReturnType<typeof shaped> {
    if (sql === 'rollback') return rollbackOf(db, beforeEach, () => (isChanged = false))
    const isHarmless = HARMLESS.test(sql)
    return shaped(db.prepare(sql), beforeEach, () => (isChanged ||= !isHarmless))
  }

  return {
    database: {
      close() {
        log.close()
        db.close()
      },
      prepare(sql) {
        let statement = prepared.get(sql)
        if (!statement) {
          if (prepared.size >= PREPARED_MAX) prepared.clear()
          statement = shape(sql)
          prepared.set(sql, statement)
        }
        return statement
      },
    },
    takeChanged() {
      const wasChanged = isChanged
      isChanged = false
      return wasChanged
    },
    sync() {
      copying.committed()
      return log.sync()
    },
    endCopying: copying.end,
  }
}

/** All of it, and syncs the database. */
function copyLogInto(db: DatabaseSync): void {
  const { busy } = db.prepare('pragma wal_checkpoint(truncate)').get() as { busy: number }
  if (busy) throw new Error('the log of the database is in use')
}

/** A full disk makes SQLite roll back by itself; a second one would fail and hide the reason for the first. */
function rollbackOf(db: DatabaseSync, beforeEach: () => void, afterEach: () => void): ReturnType<typeof shaped> {
  const statement = shaped(db.prepare('rollback'), beforeEach, afterEach)
  const nothing = { changes: 0, lastInsertRowid: 0 }
  return {
    ...statement,
    run(parameters) {
      if (db.isTransaction) return statement.run(parameters)
      afterEach()
      return nothing
    },
  }
}

/** `afterEach` is called after each that has not failed. */
function shaped(statement: StatementSync, beforeEach: () => void, afterEach: () => void) {
  const columns = statement.columns().map(({ name }) => name)
  const rowOf = rowMaker(columns)
  statement.setReturnArrays(true)
  const values = (parameters: readonly unknown[]) => {
    beforeEach()
    return parameters as SQLInputValue[]
  }
  const done = <T>(result: T): T => {
    afterEach()
    return result
  }
  return {
    reader: columns.length > 0,
    all: (parameters: readonly unknown[]) =>
      done((statement.all(...values(parameters)) as unknown as unknown[][]).map(rowOf)),
    run: (parameters: readonly unknown[]) => done(statement.run(...values(parameters))),
    iterate: (parameters: readonly unknown[]) =>
      (statement.iterate(...values(parameters)) as unknown as IteratorObject<unknown[]>).map(rowOf),
  }
}

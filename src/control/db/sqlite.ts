// Kysely's SQLite dialect speaks to an object with better-sqlite3's shape; this gives node:sqlite that shape.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { type SqliteDatabase, SqliteDialect } from 'kysely'
import type { Reader } from './prepare.ts'

const PREPARED_MAX = 500

/** `beforeEach` is called before each statement: any of them may commit something. */
export function sqliteDialect(path: string, beforeEach: () => void): SqliteDialect {
  return new SqliteDialect({ database: async () => openSqlite(path, beforeEach) })
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

function openSqlite(path: string, beforeEach: () => void): SqliteDatabase {
  const db = new DatabaseSync(path, { timeout: 5000 })
  // FULL: an answered change must survive a power cut, which WAL alone does not promise.
  for (const pragma of ['journal_mode = wal', 'synchronous = full', 'foreign_keys = on', 'busy_timeout = 5000']) {
    db.exec(`pragma ${pragma}`)
  }
  const prepared = new Map<string, ReturnType<typeof shaped>>()
  return {
    close: () => db.close(),
    prepare(sql) {
      let statement = prepared.get(sql)
      if (!statement) {
        if (prepared.size >= PREPARED_MAX) prepared.clear()
        statement = sql === 'rollback' ? rollbackOf(db, beforeEach) : shaped(db.prepare(sql), beforeEach)
        prepared.set(sql, statement)
      }
      return statement
    },
  }
}

/** A full disk makes SQLite roll back by itself; a second one would fail and hide the reason for the first. */
function rollbackOf(db: DatabaseSync, beforeEach: () => void): ReturnType<typeof shaped> {
  const statement = shaped(db.prepare('rollback'), beforeEach)
  const nothing = { changes: 0, lastInsertRowid: 0 }
  return { ...statement, run: (parameters) => (db.isTransaction ? statement.run(parameters) : nothing) }
}

function shaped(statement: StatementSync, beforeEach: () => void) {
  const columns = statement.columns().map(({ name }) => name)
  const rowOf = rowMaker(columns)
  statement.setReturnArrays(true)
  const values = (parameters: readonly unknown[]) => {
    beforeEach()
    return parameters as SQLInputValue[]
  }
  return {
    reader: columns.length > 0,
    all: (parameters: readonly unknown[]) =>
      (statement.all(...values(parameters)) as unknown as unknown[][]).map(rowOf),
    run: (parameters: readonly unknown[]) => statement.run(...values(parameters)),
    iterate: (parameters: readonly unknown[]) =>
      (statement.iterate(...values(parameters)) as unknown as IteratorObject<unknown[]>).map(rowOf),
  }
}

// Kysely's SQLite dialect speaks to an object with better-sqlite3's shape; this gives node:sqlite that shape.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { type SqliteDatabase, SqliteDialect } from 'kysely'
import type { Reader } from './prepare.ts'

const PREPARED_MAX = 500

export function sqliteDialect(path: string): SqliteDialect {
  return new SqliteDialect({ database: async () => openSqlite(path) })
}

/** A second connection that only reads. In WAL it sees every commit at once and never waits for a writer. */
export function openReader(path: string): Reader & { close(): void } {
  let db: DatabaseSync | undefined
  const prepared = new Map<string, (values: readonly (string | number)[]) => unknown>()
  function firstOf(sql: string): (values: readonly (string | number)[]) => unknown {
    // Opened at the first use: the file is there by then, and migrated.
    db ??= new DatabaseSync(path, { readOnly: true, timeout: 5000 })
    const statement = db.prepare(sql)
    statement.setReturnArrays(true)
    const columns = statement.columns().map(({ name }) => name)
    return (values) => {
      const cells = statement.get(...values) as unknown as unknown[] | undefined
      return cells && rowOf(columns, cells)
    }
  }
  return {
    first(sql, values) {
      let first = prepared.get(sql)
      if (!first) {
        first = firstOf(sql)
        prepared.set(sql, first)
      }
      return first(values)
    },
    close: () => db?.close(),
  }
}

/** An object as this engine likes them: those that node:sqlite makes are slow to make and slow to read. */
function rowOf(columns: readonly string[], cells: readonly unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (let i = 0; i < columns.length; i++) row[columns[i] ?? ''] = cells[i]
  return row
}

function openSqlite(path: string): SqliteDatabase {
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
        statement = sql === 'rollback' ? rollbackOf(db) : shaped(db.prepare(sql))
        prepared.set(sql, statement)
      }
      return statement
    },
  }
}

/** A full disk makes SQLite roll back by itself; a second one would fail and hide the reason for the first. */
function rollbackOf(db: DatabaseSync): ReturnType<typeof shaped> {
  const statement = shaped(db.prepare('rollback'))
  const nothing = { changes: 0, lastInsertRowid: 0 }
  return { ...statement, run: (parameters) => (db.isTransaction ? statement.run(parameters) : nothing) }
}

function shaped(statement: StatementSync) {
  const values = (parameters: readonly unknown[]) => parameters as SQLInputValue[]
  return {
    reader: statement.columns().length > 0,
    all: (parameters: readonly unknown[]) => statement.all(...values(parameters)),
    run: (parameters: readonly unknown[]) => statement.run(...values(parameters)),
    iterate: (parameters: readonly unknown[]) => statement.iterate(...values(parameters)),
  }
}

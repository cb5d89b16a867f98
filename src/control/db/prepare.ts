// Building a query's text costs more than running it against SQLite. What is asked on nearly every request is built once
// and asked again with other values; on SQLite through a connection that only reads, so that it waits for no writer.
import type { CompiledQuery } from 'kysely'
import type { Db } from './tables.ts'

interface Compilable<Row> {
  compile(): CompiledQuery<Row>
}

type Value = string | number

/** Answers at once with what is committed. */
export interface Reader {
  first(sql: string, values: readonly Value[]): unknown
}

const readers = new WeakMap<object, Reader>()

export function readThrough(db: Db, reader: Reader): void {
  readers.set(db, reader)
}

/** The first row that a query answers. Its values must be bound in the order of the arguments, each once. */
export function prepare<Row, Values extends Value[]>(
  build: (db: Db, ...values: Values) => Compilable<Row>,
): (db: Db, ...values: Values) => Promise<Row | undefined> {
  const compiled = new WeakMap<object, CompiledQuery<Row>>()
  return async (db, ...values) => {
    // A transaction has the adapter of its database, and sees what it has written itself.
    const { adapter } = db.getExecutor()
    let query = compiled.get(adapter)
    if (!query) {
      query = build(db, ...values).compile()
      compiled.set(adapter, query)
    }
    const reader = readers.get(db)
    if (reader) return reader.first(query.sql, values) as Row | undefined
    const { rows } = await db.executeQuery<Row>({ ...query, parameters: values })
    return rows[0]
  }
}

// Building a query's text costs more than running it against SQLite. Queries that nearly every request makes are built
// once and reused with other values (`npm run bench -- api`); on SQLite through a read-only connection, so that they
// wait for no writer.
import type { CompiledQuery } from 'kysely'
import type { Db } from './tables.ts'

interface Compilable<Row> {
  compile(): CompiledQuery<Row>
}

type Value = string | number
type First = (values: readonly Value[]) => unknown

/** Answers at once with what is committed. */
export interface Reader {
  /** A query that answers its first row, if there is one. */
  prepare(sql: string): First
}

const readers = new WeakMap<object, Reader>()

export function readThrough(db: Db, reader: Reader): void {
  readers.set(db, reader)
}

/**
 * The first row of a query, not as a promise where the engine can: that saves nearly every request a turn of the event
 * loop (`npm run bench -- api`). Its values must be bound in the order of the arguments, each once.
 */
export function prepare<Row, Values extends Value[]>(
  build: (db: Db, ...values: Values) => Compilable<Row>,
): (db: Db, ...values: Values) => Row | undefined | Promise<Row | undefined> {
  const compiled = new WeakMap<object, CompiledQuery<Row>>()
  const direct = new WeakMap<object, First>()

  function compile(db: Db, values: Values): CompiledQuery<Row> {
    // A transaction has the adapter of its database, and sees what it has written itself.
    const { adapter } = db.getExecutor()
    let query = compiled.get(adapter)
    if (!query) {
      query = build(db, ...values).compile()
      compiled.set(adapter, query)
    }
    return query
  }

  return (db, ...values) => {
    const known = direct.get(db)
    if (known) return known(values) as Row | undefined
    const query = compile(db, values)
    const first = readers.get(db)?.prepare(query.sql)
    if (!first) return db.executeQuery<Row>({ ...query, parameters: values }).then(({ rows }) => rows[0])
    direct.set(db, first)
    return first(values) as Row | undefined
  }
}

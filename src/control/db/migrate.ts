// Migrates the database to this version of the code: forward only, in one transaction, recorded. On PostgreSQL a
// separate advisory lock keeps out versions from before one process owned the database.
import { sql } from 'kysely'
import { StartFault } from '../../kit/start-fault.ts'
import type { Engine } from './database.ts'
import type { Db } from './tables.ts'

export interface Migration {
  name: string
  statements: readonly string[]
}

const ADVISORY_LOCK = 7_306_204_113

export async function migrate(db: Db, engine: Engine, migrations: readonly Migration[]): Promise<string[]> {
  return db.transaction().execute(async (trx) => {
    if (engine === 'postgres') await sql`select pg_advisory_xact_lock(${ADVISORY_LOCK})`.execute(trx)
    await sql`create table if not exists migrations (name text primary key, applied_at bigint not null)`.execute(trx)
    const { rows } = await sql<{ name: string }>`select name from migrations order by name`.execute(trx)
    const applied = rows.map((row) => row.name)
    const pending = planMigrations(applied, migrations)
    for (const migration of pending) {
      for (const statement of migration.statements) await sql.raw(statement).execute(trx)
      await sql`insert into migrations (name, applied_at) values (${migration.name}, ${Date.now()})`.execute(trx)
    }
    return pending.map((migration) => migration.name)
  })
}

/** Whether nothing has ever been kept in the database. */
export async function isFresh(db: Db, engine: Engine): Promise<boolean> {
  const { rows } = await (engine === 'postgres'
    ? sql`select 1 where to_regclass('migrations') is not null`
    : sql`select 1 from sqlite_master where name = 'migrations'`
  ).execute(db)
  return rows.length === 0
}

export function planMigrations(applied: readonly string[], known: readonly Migration[]): Migration[] {
  const unknown = applied.filter((name) => !known.some((migration) => migration.name === name))
  if (unknown.length > 0) {
    throw new StartFault(
      `The database was made by a later version of Gamekeeper (it has ${unknown.join(', ')}). Run that version, or restore an older database.`,
    )
  }
  return known.filter((migration) => !applied.includes(migration.name))
}

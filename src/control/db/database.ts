import { userInfo } from 'node:os'
import { join } from 'node:path'
import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { guardPool, type MayUse } from './postgres-pool.ts'
import { readThrough } from './prepare.ts'
import { openReader, sqliteDialect } from './sqlite.ts'
import type { Db, Tables } from './tables.ts'

export type Engine = 'sqlite' | 'postgres'

export interface OpenDatabase {
  db: Db
  engine: Engine
  /** Where it lies, if it is a file. */
  file: string | null
  close(): Promise<void>
}

// Counts, sizes and times stay below 2^53, so a bigint column reads as a number, as it does from SQLite.
const INT8 = 20
pg.types.setTypeParser(INT8, Number)

// An address without a user means the one that runs us, as everywhere with PostgreSQL. The driver asks the environment, which
// need not say.
pg.defaults.user ||= ownName()

function ownName(): string | undefined {
  try {
    return userInfo().username
  } catch {
    // A user id without a name, as containers have them.
    return undefined
  }
}

export function openDatabase(options: {
  dataDir: string
  url: string | null
  onBroken: (error: Error) => void
  /** Of a PostgreSQL; always by default. */
  mayUse?: MayUse
}): OpenDatabase {
  const { url, onBroken, mayUse = () => true } = options
  return url ? openPostgres(url, onBroken, mayUse) : openSqlite(sqliteFile(options.dataDir))
}

export const sqliteFile = (dataDir: string) => join(dataDir, 'gamekeeper.db')

function openSqlite(file: string): OpenDatabase {
  const reader = openReader(file)
  const db = new Kysely<Tables>({ dialect: sqliteDialect(file, reader.release) })
  readThrough(db, reader)
  const close = async () => {
    reader.close()
    await db.destroy()
  }
  return { db, engine: 'sqlite', file, close }
}

function openPostgres(url: string, onBroken: (error: Error) => void, mayUse: MayUse): OpenDatabase {
  const pool = new pg.Pool({ connectionString: url, max: 20, connectionTimeoutMillis: 5000 })
  // A connection that breaks while idle is replaced by the pool; without a listener it would end the process.
  pool.on('error', onBroken)
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: guardPool(pool, onBroken, mayUse) }) })
  return { db, engine: 'postgres', file: null, close: () => db.destroy() }
}

export async function pingDatabase(db: Db): Promise<void> {
  await sql`select 1`.execute(db)
}

/** Writes and syncs one row: a database that is full or read-only goes on answering what only reads. */
export async function probeDatabase(db: Db): Promise<void> {
  const value = new Date().toISOString()
  await db
    .insertInto('instance')
    .values({ key: 'readiness.probe', value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
    .execute()
}

/** Whether a write failed since a row with that key is there already, on either engine. */
export function isUniqueViolation(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  const SQLITE_CONSTRAINT_PRIMARYKEY = 1555
  const SQLITE_CONSTRAINT_UNIQUE = 2067
  return code === '23505' || errcode === SQLITE_CONSTRAINT_PRIMARYKEY || errcode === SQLITE_CONSTRAINT_UNIQUE
}

// A pool whose errors say whether PostgreSQL is unavailable: then nothing is wrong with the query, and it may be
// retried.
import type { PostgresPool, PostgresPoolClient } from 'kysely'
import pg from 'pg'
import { fail } from '../../contract/errors.ts'

const RETRY_AFTER_SECONDS = 2
/** Connections that are refused, cut or too many; shutting down and starting up. */
const AWAY = /^(?:08...|53300|57P0[1235])$/

/** Asked before each use: false refuses it as not ready, and a promise of either makes it wait. */
export type MayUse = () => boolean | Promise<boolean>

export function guardPool(pool: pg.Pool, onBroken: (error: Error) => void, mayUse: MayUse): PostgresPool {
  /** Kysely knows a connection by its client, so each has one guard for life. */
  const guards = new WeakMap<pg.PoolClient, PostgresPoolClient>()
  const broken = new WeakSet<pg.PoolClient>()
  // One that breaks while in use rejects its query, and says so on the client before that.
  pool.on('connect', (client) =>
    client.on('error', (error) => {
      broken.add(client)
      onBroken(error)
    }),
  )

  function guard(client: pg.PoolClient): PostgresPoolClient {
    // Without cursors, which the dialect is not given, a query is always a text and its values.
    const query = (sql: string, values: readonly unknown[]) =>
      client.query(sql, values as unknown[]).catch((error: unknown) => {
        throw broken.has(client) || isAway(error) ? away(error) : error
      })
    return { query: query as unknown as PostgresPoolClient['query'], release: () => client.release() }
  }

  return {
    async connect() {
      const usable = mayUse()
      if (usable !== true && !(await usable)) throw away()
      const client = await pool.connect().catch((error: unknown) => {
        throw away(error)
      })
      const known = guards.get(client) ?? guard(client)
      guards.set(client, known)
      return known
    },
    end: () => pool.end(),
  }
}

const isAway = (error: unknown) => error instanceof pg.DatabaseError && AWAY.test(error.code ?? '')

const away = (cause?: unknown) =>
  fail(
    'not_ready',
    { detail: 'The database cannot be reached.', headers: { 'retry-after': String(RETRY_AFTER_SECONDS) } },
    cause,
  )

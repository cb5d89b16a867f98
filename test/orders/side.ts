// The database seen from the side: it answers also while an actor is held in the middle of a transaction.
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'

export interface Side {
  /** What is committed; a parameter is written `?`. */
  look(sql: string, ...values: string[]): Promise<unknown[]>
  /** Whether one of these backends waits for a lock that another transaction has. */
  isBlocked(backends: ReadonlySet<number>): Promise<boolean>
  close(): Promise<void>
}

export function sqliteSide(path: string): Side {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 })
  return {
    look: async (sql, ...values) => db.prepare(sql).all(...values),
    isBlocked: async () => false,
    close: async () => db.close(),
  }
}

export function postgresSide(url: string): Side {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  const look: Side['look'] = async (sql, ...values) => {
    let index = 0
    return (
      await pool.query(
        sql.replaceAll('?', () => `$${++index}`),
        values,
      )
    ).rows
  }
  return {
    look,
    async isBlocked(backends) {
      if (backends.size === 0) return false
      const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and pid in (${[...backends]})`
      return (await look(waiting)).length > 0
    },
    close: () => pool.end(),
  }
}

// Forces the order of two requests that lock the same server, or template. On PostgreSQL the row is held from the side: requests come
// to wait for it one after the other, and the first two go on in that order, with whatever they have read before. On SQLite, where
// one transaction runs at a time, they are sent one after the other.
import pg from 'pg'
import type { TestService } from './service.ts'
import { until } from './until.ts'

export async function inOrder<T>(
  service: Pick<TestService, 'databaseUrl'>,
  id: string,
  requests: readonly (() => Promise<T>)[],
  table: 'servers' | 'templates' = 'servers',
): Promise<T[]> {
  if (service.databaseUrl === null) return Promise.all(requests.map((send) => send()))
  const client = new pg.Client({ connectionString: service.databaseUrl })
  await client.connect()
  try {
    await client.query('begin')
    await client.query(`select id from ${table} where id = $1 for update`, [id])
    const replies: Promise<T>[] = []
    for (const send of requests) {
      const before = await pidsWaiting(client)
      const reply = send()
      let isAnswered = false
      const answered = () => {
        isAnswered = true
      }
      reply.then(answered, answered)
      replies.push(reply)
      // Refused without the lock is in order too: it then decides nothing.
      await until(async () => isAnswered || (await pidsWaiting(client)).difference(before).size > 0)
    }
    await client.query('commit')
    return await Promise.all(replies)
  } finally {
    await client.end()
  }
}

/**
 * Those who wait for us, or for one who does: what the service does besides may wait already, or for other rows. Not of
 * `pg_stat_activity`, which within a transaction lists only who was there when it was first asked.
 */
async function pidsWaiting(client: pg.Client): Promise<Set<number>> {
  const { rows } = await client.query(
    `with recursive waits as (
       select pid, unnest(pg_blocking_pids(pid)) as holder from pg_locks where not granted
     ), waiting as (
       select pid from waits where holder = pg_backend_pid()
       union select waits.pid from waits join waiting on waits.holder = waiting.pid
     )
     select distinct pid from waiting`,
  )
  return new Set(rows.map(({ pid }) => pid as number))
}

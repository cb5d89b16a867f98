// Forces the order of two requests that lock the same server. On PostgreSQL the row is held from the side: requests come
// to wait for it one after the other, and go on in that order, with whatever they have read before. On SQLite, where
// one transaction runs at a time, they are sent one after the other.
import pg from 'pg'
import type { TestService } from './service.ts'
import { until } from './until.ts'

export async function inOrder<T>(
  service: TestService,
  serverId: string,
  requests: readonly (() => Promise<T>)[],
): Promise<T[]> {
  if (service.databaseUrl === null) return Promise.all(requests.map((send) => send()))
  const client = new pg.Client({ connectionString: service.databaseUrl })
  await client.connect()
  try {
    await client.query('begin')
    await client.query('select id from servers where id = $1 for update', [serverId])
    const before = await countWaiting(client)
    const replies: Promise<T>[] = []
    for (const send of requests) {
      const reply = send()
      let isAnswered = false
      reply.finally(() => {
        isAnswered = true
      })
      replies.push(reply)
      // Refused without the lock is in order too: it then decides nothing.
      await until(async () => isAnswered || (await countWaiting(client)) >= before + replies.length)
    }
    await client.query('commit')
    return await Promise.all(replies)
  } finally {
    await client.end()
  }
}

async function countWaiting(client: pg.Client): Promise<number> {
  const { rows } = await client.query(
    `select count(*)::int as waiting from pg_locks join pg_stat_activity using (pid)
     where not granted and datname = current_database()`,
  )
  return rows[0].waiting
}

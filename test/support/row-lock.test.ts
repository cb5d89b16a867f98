import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { freshDatabase, NEEDS_POSTGRES } from './engines.ts'
import { inOrder } from './row-lock.ts'

test('requests go on in their order also where each opens a connection of its own', NEEDS_POSTGRES, async () => {
  const databaseUrl = await freshDatabase('postgres')
  const connect = async () => {
    const client = new pg.Client({ connectionString: databaseUrl as string })
    await client.connect()
    return client
  }
  const first = await connect()
  await first.query("create table servers (id text primary key, names text default '')")
  await first.query("insert into servers values ('castle')")
  await first.end()
  const append = (name: string) => async () => {
    const client = await connect()
    try {
      const { rows } = await client.query('update servers set names = names || $1 returning names', [name])
      return rows[0].names as string
    } finally {
      await client.end()
    }
  }
  const orders = await inOrder({ databaseUrl }, 'castle', [append('a'), append('b')])
  assert.deepEqual(orders, ['a', 'ab'])
})

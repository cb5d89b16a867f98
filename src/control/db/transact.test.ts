import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { sql } from 'kysely'
import { freshDatabase, onBothEngines } from '../../../test/support/engines.ts'
import { openDatabase } from './database.ts'
import { onCommit, transact } from './transact.ts'

onBothEngines('transactions', (engine) => {
  test('two that wait for each other both happen, each once', async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-test-'))
    const { db, close } = openDatabase({ dataDir, url: await freshDatabase(engine), onBroken: () => {} })
    t.after(async () => {
      await close()
      await rm(dataDir, { recursive: true, force: true })
    })
    await sql`create table counters (id integer primary key, value integer not null)`.execute(db)
    await sql`insert into counters values (1, 0), (2, 0)`.execute(db)
    const { promise: bothBegun, resolve } = Promise.withResolvers<void>()
    let begun = 0
    let commits = 0
    // On SQLite one comes after the other, and nobody can be waited for.
    const meet = async () => {
      if (++begun === 2 || engine === 'sqlite') resolve()
      await bothBegun
    }
    const inOrder = (first: number, second: number) =>
      transact(db, {}, async (trx) => {
        onCommit(trx, () => commits++)
        await sql`update counters set value = value + 1 where id = ${first}`.execute(trx)
        await meet()
        await sql`update counters set value = value + 1 where id = ${second}`.execute(trx)
      })
    await Promise.all([inOrder(1, 2), inOrder(2, 1)])
    const { rows } = await sql<{ value: number }>`select value from counters`.execute(db)
    assert.deepEqual([rows.map(({ value }) => Number(value)), commits], [[2, 2], 2])
    if (engine === 'postgres') assert.ok(begun > 2, 'nobody had to begin again')
  })
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Kysely, sql } from 'kysely'
import { openReader, sqliteDialect } from './sqlite.ts'

const directory = mkdtempSync(join(tmpdir(), 'gamekeeper-test-'))
after(() => rmSync(directory, { recursive: true, force: true }))

async function open(name: string) {
  const file = join(directory, name)
  const reader = openReader(file)
  const db = new Kysely<{ t: { id: number; a: string } }>({ dialect: sqliteDialect(file, reader.release) })
  await sql`create table t (id integer primary key, a text)`.execute(db)
  await sql`insert into t values (1, 'old')`.execute(db)
  const first = reader.prepare('select * from t where id = ?')
  const close = async () => {
    reader.close()
    await db.destroy()
  }
  return { file, db, read: () => (first([1]) as { a: string }).a, close }
}

test('a read sees what was committed before it in the same turn, and nothing that is not committed', async () => {
  const { db, read, close } = await open('committed.db')
  assert.equal(read(), 'old')
  await db.transaction().execute(async (trx) => {
    await trx.updateTable('t').set({ a: 'new' }).execute()
    assert.equal(read(), 'old')
  })
  assert.equal(read(), 'new')
  const [row] = await db.updateTable('t').set({ a: 'newer' }).returningAll().execute()
  assert.deepEqual(row, { id: 1, a: 'newer' })
  assert.equal(read(), 'newer')
  await close()
})

test('reads of one turn see one state; those of the next see what another process has committed', async () => {
  const { file, read, close } = await open('other.db')
  const other = new DatabaseSync(file)
  assert.equal(read(), 'old')
  other.exec(`update t set a = 'new'`)
  assert.equal(read(), 'old')
  await nextTurn()
  assert.equal(read(), 'new')
  other.close()
  await close()
})

test('reads between the writes do not keep the log from being started over', async () => {
  const { file, db, read, close } = await open('log.db')
  const text = 'x'.repeat(8000)
  for (let i = 0; i < 3000; i++) {
    read()
    await db
      .updateTable('t')
      .set({ a: `${i}${text}` })
      .execute()
  }
  // SQLite starts it over at about 4 MB; all that was written is six times that.
  assert.ok(statSync(`${file}-wal`).size < 8e6, `${statSync(`${file}-wal`).size} bytes`)
  await close()
})

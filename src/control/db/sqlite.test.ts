import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Kysely, sql } from 'kysely'
import { until } from '../../../test/support/until.ts'
import { openReader, sqliteDialect } from './sqlite.ts'
import { openWriteAheadLog } from './sqlite-log.ts'

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
  const text = 'x'.repeat(40_000)
  for (let i = 0; i < 2500; i++) {
    read()
    await db
      .updateTable('t')
      .set({ a: `${i}${text}` })
      .execute()
  }
  // It is started over at 33 MB at the latest; all that was written is three times that.
  assert.ok(statSync(`${file}-wal`).size < 40e6, `${statSync(`${file}-wal`).size} bytes`)
  await close()
})

test('what was committed is copied from the log into the database, by another thread', async () => {
  const { file, db, close } = await open('copied.db')
  for (let id = 2; id <= 250; id++) await db.insertInto('t').values({ id, a: 'new' }).execute()
  const copy = join(directory, 'without-log.db')
  await until(async () => {
    // By another process: who closes a file gives up all locks that his process has on it, and with them SQLite's.
    execFileSync('cp', [file, copy])
    using alone = new DatabaseSync(copy)
    // Copied in the middle of it, it may be anything.
    const count = () => alone.prepare('select count(*) as rows from t').get()?.rows
    return await Promise.try(count).then(
      (rows) => Number(rows) >= 200,
      () => false,
    )
  })
  await close()
  assert.equal(existsSync(`${file}-wal`), false)
})

/** A database whose log reaches the disk when the test says so. */
async function openHeld(name: string) {
  const file = join(directory, name)
  const syncs: PromiseWithResolvers<void>[] = []
  const dialect = sqliteDialect(
    file,
    () => {},
    (log, copyToDatabase) =>
      openWriteAheadLog(log, copyToDatabase, () => {
        const sync = Promise.withResolvers<void>()
        syncs.push(sync)
        return sync.promise
      }),
  )
  const db = new Kysely<{ t: { id: number; a: string } }>({ dialect })
  const making = sql`create table t (id integer primary key, a text)`.execute(db)
  await until(async () => syncs.length > 0)
  syncs.shift()?.resolve()
  await making
  const insert = (id: number) => {
    const answer = { isThere: false, done: db.insertInto('t').values({ id, a: '' }).execute() }
    answer.done.then(
      () => (answer.isThere = true),
      () => {},
    )
    return answer
  }
  const ids = () => db.selectFrom('t').select('id').execute()
  return { file, db, syncs, insert, ids }
}

test('a change is answered once the log is on disk; others read and write meanwhile, and share the next sync', async () => {
  const { db, syncs, insert, ids } = await openHeld('held.db')
  const first = insert(1)
  await until(async () => syncs.length === 1)
  const others = [insert(2), insert(3)]
  assert.equal((await db.transaction().execute((trx) => trx.selectFrom('t').selectAll().execute())).length, 3)
  assert.equal((await ids()).length, 3)
  assert.deepEqual(
    [first, ...others].map(({ isThere }) => isThere),
    [false, false, false],
  )
  syncs[0]?.resolve()
  await first.done
  await until(async () => syncs.length === 2)
  assert.deepEqual(
    others.map(({ isThere }) => isThere),
    [false, false],
  )
  syncs[1]?.resolve()
  await Promise.all(others.map(({ done }) => done))
  await assert.rejects(
    db.transaction().execute(async (trx) => {
      await trx.deleteFrom('t').execute()
      throw new Error('never mind')
    }),
    /never mind/,
  )
  assert.equal(syncs.length, 2)
  await db.destroy()
})

test('what a sync could not write is copied into the database; where that fails too, the change is not answered', async () => {
  const { file, db, syncs, insert, ids } = await openHeld('failing.db')
  const copied = insert(1)
  await until(async () => syncs.length === 1)
  syncs[0]?.reject(Object.assign(new Error('EIO'), { code: 'EIO' }))
  await copied.done
  assert.equal(statSync(`${file}-wal`).size, 0)
  // Who reads an older state keeps it from being copied.
  const reader = new DatabaseSync(file)
  reader.exec('pragma busy_timeout = 0; begin; select * from t')
  await sql`pragma busy_timeout = 0`.execute(db)
  const refused = insert(2)
  await until(async () => syncs.length === 2)
  syncs[1]?.reject(Object.assign(new Error('EIO'), { code: 'EIO' }))
  await assert.rejects(refused.done, { code: 'EIO' })
  await assert.rejects(insert(3).done, { code: 'EIO' })
  reader.close()
  await insert(4).done
  assert.equal(syncs.length, 2)
  assert.equal((await ids()).length, 4)
  await db.destroy()
})

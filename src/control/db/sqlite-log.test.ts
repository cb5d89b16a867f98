// A change is answered when it is on disk, and nobody stands still for that: the disk of this file syncs when it is told to.
import assert from 'node:assert/strict'
import fs, { mkdtempSync, rmSync, statSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Kysely, sql } from 'kysely'

type Sync = { go(): void; fail(): void }
const asked: Sync[] = []
let isHolding = false
let wake = () => {}
const original = fs.fdatasync
Object.assign(fs, {
  fdatasync(fd: number, done: fs.NoParamCallback) {
    const go = () => original(fd, done)
    asked.push({ go, fail: () => done(Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })) })
    if (isHolding) wake()
    else go()
  },
})
syncBuiltinESMExports()
const { openReader, sqliteDialect } = await import('./sqlite.ts')

const directory = mkdtempSync(join(tmpdir(), 'gamekeeper-test-'))
after(() => rmSync(directory, { recursive: true, force: true }))

/** Resolves when a sync is asked for that is held from now on. */
function holdSyncs(): Promise<void> {
  asked.length = 0
  isHolding = true
  return new Promise((resolve) => {
    wake = resolve
  })
}

async function open(t: TestContext, name: string) {
  const file = join(directory, name)
  const reader = openReader(file)
  const db = new Kysely<{ t: { id: number; a: string } }>({ dialect: sqliteDialect(file, reader.release) })
  await sql`create table t (id integer primary key, a text)`.execute(db)
  t.after(async () => {
    isHolding = false
    reader.close()
    await db.destroy()
  })
  const insert = (id: number) =>
    db.transaction().execute((trx) =>
      trx
        .insertInto('t')
        .values({ id, a: 'a' })
        .execute()
        .then(() => id),
    )
  const count = () => (reader.prepare('select count(*) as count from t')([]) as { count: number }).count
  return { file, db, insert, count }
}

const isSettled = async (work: Promise<unknown>) => {
  let settled = false
  void work.then(
    () => (settled = true),
    () => (settled = true),
  )
  for (let turn = 0; turn < 20; turn++) await nextTurn()
  return settled
}

test('a write goes on when it is on disk, and the event loop goes on meanwhile', async (t) => {
  const { db, insert } = await open(t, 'answered.db')
  for (const write of [() => insert(1), () => db.insertInto('t').values({ id: 2, a: 'a' }).returningAll().execute()]) {
    const held = holdSyncs()
    const written = write()
    await held
    assert.equal(await isSettled(written), false)
    asked[0]?.go()
    await written
  }
})

test('what only reads waits for no sync, and neither does what was rolled back', async (t) => {
  const { db, insert, count } = await open(t, 'read.db')
  await insert(1)
  void holdSyncs()
  await db.transaction().execute((trx) => trx.selectFrom('t').selectAll().execute())
  const undone = db.transaction().execute(async (trx) => {
    await trx.deleteFrom('t').execute()
    throw new Error('undone')
  })
  await assert.rejects(undone, { message: 'undone' })
  assert.deepEqual([asked, count()], [[], 1])
})

test('writes that come while a sync is under way share the next', async (t) => {
  const { insert, count } = await open(t, 'shared.db')
  const held = holdSyncs()
  const first = insert(1)
  await held
  const others = Array.from({ length: 100 }, (_, index) => insert(index + 2))
  while (count() < 101) await nextTurn()
  assert.equal(await isSettled(Promise.race(others)), false, 'the sync under way may have begun before them')
  assert.equal(asked.length, 1)
  isHolding = false
  asked[0]?.go()
  await Promise.all([first, ...others])
  assert.equal(asked.length, 2)
})

test('after a sync that failed nothing is answered before what was committed is in the database', async (t) => {
  const { file, insert, count } = await open(t, 'broken.db')
  const held = holdSyncs()
  const failing = insert(1)
  await held
  const meanwhile = insert(2)
  while (count() < 2) await nextTurn()
  asked[0]?.fail()
  await assert.rejects(failing, { code: 'EIO' })
  await assert.rejects(meanwhile, { code: 'EIO' })
  assert.equal(asked.length, 1, 'a second sync would say that all is well')
  assert.ok(statSync(`${file}-wal`).size > 8192)
  isHolding = false
  await insert(3)
  assert.equal(count(), 3)
  // The log holds the last write alone.
  assert.ok(statSync(`${file}-wal`).size <= 8192 + 400, `${statSync(`${file}-wal`).size} bytes`)
})

test('transactions that wait for each other are not one turn', async (t) => {
  const { db } = await open(t, 'turns.db')
  let done = 0
  const busy = (id: number) =>
    db.transaction().execute(async (trx) => {
      await trx.insertInto('t').values({ id, a: 'a' }).execute()
      for (const end = performance.now() + 2; performance.now() < end; );
      done++
    })
  const all = Promise.all(Array.from({ length: 20 }, (_, id) => busy(id)))
  let turns = 0
  for (; done < 20; turns++) await nextTurn()
  await all
  assert.ok(turns >= 5, `others had ${turns} turns between 20 transactions of 2 ms`)
})

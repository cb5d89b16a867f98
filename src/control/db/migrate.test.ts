import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { sql } from 'kysely'
import { freshDatabase, onBothEngines } from '../../../test/support/engines.ts'
import { needs } from '../../../test/support/needs.ts'
import { openDatabase } from './database.ts'
import { migrate, planMigrations } from './migrate.ts'
import { MIGRATIONS } from './migrations/index.ts'

onBothEngines('migrations', (engine) => {
  let dataDir: string
  let url: string | null
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-test-'))
    url = await freshDatabase(engine)
  })
  after(() => rm(dataDir, { recursive: true, force: true }))
  const open = () => openDatabase({ dataDir, url, onBroken: () => {} })
  const names = MIGRATIONS.map((migration) => migration.name)

  test('run on an empty database, two processes at once, and only once', async () => {
    const [one, two] = engine === 'postgres' ? [open(), open()] : [open(), undefined]
    const runs = [migrate(one.db, engine, MIGRATIONS), ...(two ? [migrate(two.db, engine, MIGRATIONS)] : [])]
    const applied = await Promise.all(runs)
    assert.deepEqual(applied.flat(), names)
    assert.deepEqual(await migrate(one.db, engine, MIGRATIONS), [])
    await one.close()
    await two?.close()
  })

  test('one that fails leaves nothing of itself behind', async () => {
    const { db, close } = open()
    const broken = { name: '999-broken', statements: ['create table half (id text)', 'create nonsense'] }
    await assert.rejects(migrate(db, engine, [...MIGRATIONS, broken]))
    await assert.rejects(sql`select * from half`.execute(db))
    assert.deepEqual(await migrate(db, engine, MIGRATIONS), [])
    await close()
  })

  test('a database of a later version is refused', async () => {
    const { db, close } = open()
    await migrate(db, engine, [...MIGRATIONS, { name: '998-later', statements: [] }])
    await assert.rejects(migrate(db, engine, MIGRATIONS), /later version.*998-later/)
    await close()
  })
})

test('migrations have unique names in the order in which they run', () => {
  const names = MIGRATIONS.map((migration) => migration.name)
  assert.deepEqual(names, [...new Set(names)].sort())
  assert.deepEqual(planMigrations(names, MIGRATIONS), [])
})

test('while it runs, the database is copied by the sqlite3 that a machine has', needs('sqlite'), async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-test-'))
  const { db, close } = openDatabase({ dataDir, url: null, onBroken: () => {} })
  await migrate(db, 'sqlite', MIGRATIONS)
  const copied = spawnSync('sqlite3', ['gamekeeper.db', "vacuum into 'copy.db'"], { cwd: dataDir, encoding: 'utf8' })
  assert.deepEqual([copied.status, copied.stderr], [0, ''])
  const copy = new DatabaseSync(join(dataDir, 'copy.db'), { readOnly: true })
  assert.equal(copy.prepare('select count(*) as n from migrations').get()?.n, MIGRATIONS.length)
  copy.close()
  await close()
  await rm(dataDir, { recursive: true })
})

// Facts from a real journal into a real database: each is recorded once, and none is kept from it by another.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { createJournal } from '../src/agent/journal/journal.ts'
import type { AgentFacts } from '../src/contract/agent.ts'
import { createFactKeeper } from '../src/control/activity/facts.ts'
import { createActivity } from '../src/control/activity/service.ts'
import { type Engine, openDatabase } from '../src/control/db/database.ts'
import { migrate } from '../src/control/db/migrate.ts'
import { MIGRATIONS } from '../src/control/db/migrations/index.ts'
import { createChanges } from '../src/control/db/row-changes.ts'
import { SYSTEM } from '../src/control/http/actor.ts'
import { createIdempotency } from '../src/control/http/idempotency.ts'
import { createCursors } from '../src/control/http/paging.ts'
import { freshDatabase, onBothEngines } from './support/engines.ts'
import { refuseEntries, takeEntriesAgain } from './support/refusal.ts'
import { until } from './support/until.ts'

const serverId = 'srv_test'
const clock = { now: () => Date.now() }
const fact = (name: string, more: object = {}) => ({
  serverId,
  kind: 'file.written',
  cause: null,
  properties: { name },
  ...more,
})

async function prepared(t: TestContext, engine: Engine) {
  const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-facts-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const databaseUrl = await freshDatabase(engine)
  const { db, close } = openDatabase({ dataDir, url: databaseUrl, onBroken: () => {} })
  t.after(close)
  await migrate(db, engine, MIGRATIONS)
  const row = { id: serverId, name: 'Castle', labels: '{}', status: 'ready', created_at: 1, updated_at: 1 } as const
  await db
    .insertInto('servers')
    .values(row as never)
    .execute()
  const journal = createJournal({ folder: join(dataDir, 'journal'), now: clock.now, onUnexpected: assert.ifError })
  t.after(() => journal.close())
  const key = Buffer.alloc(32)
  const changes = createChanges()
  const activity = createActivity({ db, key, cursors: createCursors(key), changes, clock })
  const idempotency = createIdempotency({ db, clock })
  const keeperOf = (facts: AgentFacts) => {
    const keeper = createFactKeeper({ db, facts, activity, idempotency, log: pino({ level: 'silent' }) })
    t.after(() => {
      journal.stop()
      return keeper.stop()
    })
    return keeper
  }
  const recorded = async () => {
    const rows = await db.selectFrom('activity').select(['id', 'properties']).orderBy('seq').execute()
    return rows.map(({ properties }) => JSON.parse(properties).name as string)
  }
  return { db, journal, keeperOf, recorded, database: { dataDir, databaseUrl } }
}

onBothEngines('facts', (engine) => {
  test('one that arrives between reading and forgetting is recorded, whatever its id', async (t) => {
    const { journal, keeperOf, recorded } = await prepared(t, engine)
    let arriving: object[] = [{ id: 'act_00000000000000000000000001' }, {}]
    const facts: AgentFacts = {
      ...journal,
      async forget(request) {
        for (const more of arriving) await journal.add(fact('arrived', more))
        arriving = []
        await journal.forget(request)
      },
    }
    await journal.add(fact('first'))
    await keeperOf(facts).start()
    await until(async () => (await recorded()).length === 3)
    assert.deepEqual(await recorded(), ['first', 'arrived', 'arrived'])
    // What is recorded is forgotten a moment later.
    await until(async () => (await journal.read({ limit: 10, waitMs: 0 })).length === 0)
  })

  test('one that is read again, since a crash came before it was forgotten, is recorded once', async (t) => {
    const { journal, keeperOf, recorded } = await prepared(t, engine)
    await journal.add(fact('once'))
    const [known] = await journal.read({ limit: 10, waitMs: 0 })
    await keeperOf({ ...journal, forget: async () => {} }).record(SYSTEM, known as never)
    assert.deepEqual(await recorded(), ['once'])
    await keeperOf(journal).start()
    assert.deepEqual(await recorded(), ['once'])
    assert.deepEqual(await journal.read({ limit: 10, waitMs: 0 }), [])
  })

  test('the request and the reader record one at the same time: it has one entry', async (t) => {
    const { journal, keeperOf, recorded } = await prepared(t, engine)
    for (let round = 0; round < 10; round++) await journal.add(fact(`${round}`))
    const facts = await journal.read({ limit: 10, waitMs: 0 })
    const keeper = keeperOf(journal)
    await Promise.all([keeper.start(), ...facts.map((known) => keeper.record(SYSTEM, known))])
    assert.deepEqual(
      (await recorded()).toSorted(),
      facts.map((_, round) => `${round}`),
    )
  })

  test('one that cannot be recorded, has no name or comes after its server keeps no other waiting', async (t) => {
    const { db, journal, keeperOf, recorded } = await prepared(t, engine)
    await journal.add(fact('poison'))
    await journal.add(fact('nameless', { kind: 'file.unheard_of' }))
    await journal.add(fact('late', { serverId: 'srv_gone' }))
    await journal.add(fact('plain'))
    const poisoned = { name: 'poison', number: 1n }
    const facts: AgentFacts = {
      ...journal,
      async read(request) {
        const read = await journal.read(request)
        return read.map((each) => (each.properties.name === 'poison' ? { ...each, properties: poisoned } : each))
      },
    }
    await keeperOf(facts).start()
    await journal.add(fact('next'))
    await until(async () => (await recorded()).length === 2)
    assert.deepEqual(await recorded(), ['plain', 'next'])
    assert.equal((await db.selectFrom('activity').select('id').where('chain', '=', 'srv_gone').execute()).length, 0)
  })

  test('while the database refuses, facts are kept; when it takes them again, each has one entry', async (t) => {
    const { journal, keeperOf, recorded, database } = await prepared(t, engine)
    const names = Array.from({ length: 30 }, (_, index) => `${index}`)
    await refuseEntries(database)
    for (const name of names) await journal.add(fact(name))
    await keeperOf(journal).start()
    assert.deepEqual(await recorded(), [])
    await takeEntriesAgain(database)
    await until(async () => (await recorded()).length === names.length)
    assert.deepEqual((await recorded()).toSorted(), names.toSorted())
  })
})

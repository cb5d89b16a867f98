// The database is edited behind the service's back; verification must name what was done, and where.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import type { Verification } from '../../contract/activity.ts'
import type { Db } from '../db/tables.ts'

const ENTRIES = 6

onBothEngines(
  'GET /servers/{serverId}/activity/verify and GET /activity/verify name the first entry that was altered, removed or inserted, and a chain that was cut at either end or is gone.',
  (engine) => {
    let service: TestService
    before(async () => {
      service = await startTestService({ engine })
    })
    after(() => service.stop())

    async function newChain(): Promise<string> {
      const { id } = await service.createServer()
      for (let i = 1; i < ENTRIES; i++) await service.call('PATCH', `/servers/${id}`, { body: { name: `name ${i}` } })
      return id
    }
    const verify = async (id: string): Promise<Verification> =>
      (await service.call('GET', `/servers/${id}/activity/verify`)).body
    const verifyAll = async (): Promise<Verification> => (await service.call('GET', '/activity/verify')).body

    async function tampered(edit: (db: Db, chain: string) => Promise<unknown>): Promise<Verification> {
      const id = await newChain()
      assert.equal((await verify(id)).intact, true)
      await withDatabase(service, (db) => edit(db, id))
      const found = await verify(id)
      assert.equal(found.intact, false)
      assert.equal(found.fault?.serverId, id)
      const all = await verifyAll()
      assert.equal(all.intact, false)
      // The next case begins with whole chains.
      await withDatabase(service, async (db) => {
        for (const table of ['activity', 'activity_heads'] as const)
          await db.deleteFrom(table).where('chain', '=', id).execute()
        await db.deleteFrom('servers').where('id', '=', id).execute()
      })
      assert.equal((await verifyAll()).intact, true)
      return found
    }
    const fault = ({ fault: found }: Verification) => [found?.kind, found?.position]
    const entry = (db: Db, chain: string, seq: number) =>
      db.selectFrom('activity').selectAll().where('chain', '=', chain).where('seq', '=', seq).executeTakeFirstOrThrow()
    const remove = (db: Db, chain: string, from: number, to = from) =>
      db.deleteFrom('activity').where('chain', '=', chain).where('seq', '>=', from).where('seq', '<=', to).execute()
    const setHead = (db: Db, chain: string, change: object) =>
      db.updateTable('activity_heads').set(change).where('chain', '=', chain).execute()

    test('a whole chain is intact, and says how much was checked', async () => {
      const id = await newChain()
      assert.deepEqual(await verify(id), { intact: true, chains: 1, entries: ENTRIES, fault: null })
    })

    const columns = {
      event: 'token.revoked',
      actor_name: 'nobody',
      ip: '1.2.3.4',
      user_agent: 'x',
      properties: '{}',
      at: 1,
      hash: 'x',
    }
    for (const [column, value] of Object.entries(columns)) {
      test(`an altered ${column} is found`, async () => {
        const found = await tampered((db, chain) =>
          db
            .updateTable('activity')
            .set({ [column]: value })
            .where('chain', '=', chain)
            .where('seq', '=', 3)
            .execute(),
        )
        assert.deepEqual(fault(found), ['altered', 3])
        assert.ok(found.fault?.entryId)
      })
    }

    test('a removed entry is found, at the beginning, in the middle and at the end', async () => {
      for (const seq of [1, 3, ENTRIES]) {
        const found = await tampered((db, chain) => remove(db, chain, seq))
        assert.deepEqual(fault(found), ['removed', seq])
      }
    })

    test('an entry that was taken out by moving the others up is found', async () => {
      const found = await tampered(async (db, chain) => {
        await remove(db, chain, 3)
        for (let seq = 4; seq <= ENTRIES; seq++) {
          await db
            .updateTable('activity')
            .set({ seq: seq - 1 })
            .where('chain', '=', chain)
            .where('seq', '=', seq)
            .execute()
        }
        await setHead(db, chain, { seq: ENTRIES - 1 })
      })
      assert.equal(found.fault?.position, 3)
    })

    test('an inserted entry is found', async () => {
      const found = await tampered(async (db, chain) => {
        for (let seq = ENTRIES; seq >= 3; seq--) {
          await db
            .updateTable('activity')
            .set({ seq: seq + 1 })
            .where('chain', '=', chain)
            .where('seq', '=', seq)
            .execute()
        }
        await db
          .insertInto('activity')
          .values({ ...(await entry(db, chain, 2)), seq: 3, id: `act_forged${chain}` })
          .execute()
        await setHead(db, chain, { seq: ENTRIES + 1 })
      })
      assert.equal(found.fault?.position, 3)
    })

    test('an entry that was put at the end is found', async () => {
      const found = await tampered(async (db, chain) => {
        const last = await entry(db, chain, ENTRIES)
        await db
          .insertInto('activity')
          .values({ ...last, seq: ENTRIES + 1, id: `act_forged${chain}` })
          .execute()
        await setHead(db, chain, { seq: ENTRIES + 1 })
      })
      assert.equal(found.fault?.position, ENTRIES + 1)
    })

    test('a chain that was cut at its new end, with a head to match, is found', async () => {
      const found = await tampered(async (db, chain) => {
        const { hash, at } = await entry(db, chain, 4)
        await remove(db, chain, 5, ENTRIES)
        await setHead(db, chain, { seq: 4, hash, at })
      })
      assert.equal(found.fault?.kind, 'head')
    })

    test('a chain that was cut at its old end, as if retention had done it, is found', async () => {
      const found = await tampered(async (db, chain) => {
        const { hash } = await entry(db, chain, 3)
        await remove(db, chain, 1, 3)
        await setHead(db, chain, { purged_seq: 3, purged_hash: hash })
      })
      assert.equal(found.fault?.kind, 'head')
    })

    test('an altered head is found', async () => {
      assert.equal((await tampered((db, chain) => setHead(db, chain, { hash: 'x' }))).fault?.kind, 'head')
      assert.equal((await tampered((db, chain) => setHead(db, chain, { at: 1 }))).fault?.kind, 'head')
    })

    test('a chain that is gone as a whole is found', async () => {
      const found = await tampered(async (db, chain) => {
        await remove(db, chain, 1, ENTRIES)
        await db.deleteFrom('activity_heads').where('chain', '=', chain).execute()
      })
      assert.equal(found.fault?.kind, 'head')
    })

    test('entries without a head are found, also those of a server that is gone', async () => {
      const id = await newChain()
      const removed = await withDatabase(service, async (db) => {
        await db.deleteFrom('servers').where('id', '=', id).execute()
        const head = await db.selectFrom('activity_heads').selectAll().where('chain', '=', id).executeTakeFirstOrThrow()
        await db.deleteFrom('activity_heads').where('chain', '=', id).execute()
        return head
      })
      const found = await verifyAll()
      assert.deepEqual([found.intact, found.fault?.serverId], [false, id])
      await withDatabase(service, (db) => db.insertInto('activity_heads').values(removed).execute())
      assert.equal((await verifyAll()).intact, true)
    })

    test('verification while others write finds nothing', async () => {
      const id = await newChain()
      const writes = Array.from({ length: 30 }, (_, i) =>
        service.call('PATCH', `/servers/${id}`, { body: { port: i + 1 } }),
      )
      const results = await Promise.all(Array.from({ length: 10 }, () => verify(id)))
      await Promise.all(writes)
      for (const result of results) assert.deepEqual(result.fault, null)
    })
  },
)

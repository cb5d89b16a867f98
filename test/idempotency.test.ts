import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { withDatabase } from './support/database.ts'
import { onBothEngines } from './support/engines.ts'
import { startTestService, type TestService } from './support/service.ts'

onBothEngines('idempotency', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())

  const create = (key: string, body: object, more: object = {}) =>
    service.call('POST', '/servers', { body, headers: { 'idempotency-key': key }, ...more })
  const named = async (name: string) =>
    (await service.call('GET', `/servers?limit=100&q=${name}`)).body.data as { id: string }[]

  test('the same request gives the same answer and makes one server', async () => {
    const first = await create('one', { name: 'Once' })
    const second = await create('one', { name: 'Once' })
    assert.equal(first.status, 201)
    assert.equal(second.status, 201)
    assert.equal(second.text, first.text)
    assert.equal(second.headers.get('location'), first.headers.get('location'))
    assert.equal(first.headers.get('idempotency-replayed'), null)
    assert.equal(second.headers.get('idempotency-replayed'), 'true')
    assert.equal((await named('Once')).length, 1)
  })

  test('a retry may spell the token otherwise', async () => {
    const first = await create('spelt', { name: 'Spelt' })
    for (const authorization of [`bearer ${service.adminToken}`, `Bearer   ${service.adminToken}`]) {
      const headers = { 'idempotency-key': 'spelt', authorization }
      const again = await service.call('POST', '/servers', { token: null, body: { name: 'Spelt' }, headers })
      assert.equal(again.text, first.text)
    }
  })

  test('a retry may write the fields in another order, and the path with a slash at its end', async () => {
    const labels = { owner: 'anna', since: '2026' }
    const first = await create('order', { name: 'Order', labels })
    const again = await create('order', { labels: { since: '2026', owner: 'anna' }, name: 'Order' })
    assert.equal(again.text, first.text)
    const headers = { 'idempotency-key': 'order' }
    const slash = await service.call('POST', '/servers/', { body: { name: 'Order', labels }, headers })
    assert.equal(slash.text, first.text)
    assert.equal((await named('Order')).length, 1)
  })

  test('The same key with a different request is idempotency_conflict', async () => {
    await create('two', { name: 'Two' })
    const other = await create('two', { name: 'Other' })
    assert.equal(other.status, 409)
    assert.equal(other.body.code, 'idempotency_conflict')
    const elsewhere = await service.call('POST', '/tokens', {
      body: { name: 'x', scopes: ['servers:read'], servers: '*' },
      headers: { 'idempotency-key': 'two' },
    })
    assert.equal(elsewhere.status, 409)
    assert.equal((await named('Other')).length, 0)
  })

  test('Keys belong to a token.', async () => {
    const { token } = await service.mint(['*'])
    const [mine, theirs] = [await create('mine', { name: 'Mine' }), await create('mine', { name: 'Mine' }, { token })]
    assert.notEqual(mine.body.id, theirs.body.id)
  })

  test('many at once with one key make one server', async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => create('race', { name: 'Race' })))
    assert.deepEqual([...new Set(replies.map((reply) => reply.status))], [201])
    assert.equal(new Set(replies.map((reply) => reply.body.id)).size, 1)
    assert.equal((await named('Race')).length, 1)
  })

  test('the answer outlives a restart, and so does the value of a token', async () => {
    const body = { name: 'minted', scopes: ['servers:read'], servers: '*' }
    const mint = () => service.call('POST', '/tokens', { body, headers: { 'idempotency-key': 'mint' } })
    const first = await mint()
    await service.restart()
    const second = await mint()
    assert.equal(second.text, first.text)
    assert.equal((await service.call('GET', '/servers', { token: second.body.token })).status, 200)
  })

  test("Responses are stored encrypted with a key derived from the caller's token.", async () => {
    const body = { name: 'hidden-name', scopes: ['servers:read'], servers: '*' }
    const minted = await service.call('POST', '/tokens', { body, headers: { 'idempotency-key': 'hidden' } })
    const rows = await withDatabase(service, (db) => db.selectFrom('idempotency').selectAll().execute())
    assert.ok(rows.length > 0)
    for (const row of rows) {
      const kept = Buffer.from(row.answer, 'base64').toString('latin1') + JSON.stringify(row)
      assert.ok(!kept.includes('hidden-name') && !kept.includes(minted.body.token.split('_')[2]))
    }
  })

  test('A request that was refused does not use up its key.', async () => {
    assert.equal((await create('later', { name: '' })).status, 400)
    assert.equal((await create('later', { name: 'Later' })).status, 201)
  })

  test('the same request gets the same response for 24 hours, even after a restart', async () => {
    const first = await create('old', { name: 'Old' })
    const age = (ms: number) =>
      withDatabase(service, (db) =>
        db
          .updateTable('idempotency')
          .set({ created_at: Date.now() - ms })
          .where('key', '=', 'old')
          .execute(),
      )
    await age(24 * 3600_000 - 60_000)
    await service.restart()
    assert.equal((await create('old', { name: 'Old' })).text, first.text)
    await age(24 * 3600_000 + 1000)
    const fresh = await create('old', { name: 'Old anew' })
    assert.equal(fresh.status, 201)
    assert.notEqual(fresh.body.id, first.body.id)
    assert.equal((await create('old', { name: 'Old anew' })).text, fresh.text)
  })

  test('a key of the wrong form is refused', async () => {
    for (const key of ['', ' ', 'x'.repeat(256), 'ü', 'a b']) {
      const reply = await create(key, { name: 'Never' })
      assert.equal(reply.status, 400, JSON.stringify(key))
    }
    assert.equal((await named('Never')).length, 0)
  })
})

// When the game of a server sleeps, through the front door.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'

onBothEngines('sleep of servers', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())

  const change = (id: string, body: object) => service.call('PATCH', `/servers/${id}`, { body })

  test('sleep is off by default, and is set, changed and turned off', async () => {
    const { id } = await service.createServer({ game: 'minecraft-java' })
    assert.equal((await service.call('GET', `/servers/${id}`)).body.sleep, null)
    assert.deepEqual((await change(id, { sleep: { afterMinutes: 15 } })).body.sleep, { afterMinutes: 15 })
    assert.deepEqual((await change(id, { name: 'Other' })).body.sleep, { afterMinutes: 15 })
    assert.equal((await change(id, { sleep: null })).body.sleep, null)
    const { data } = (await service.call('GET', `/servers/${id}/activity`)).body
    assert.deepEqual(data[0].properties.changes, { sleep: { from: { afterMinutes: 15 }, to: null } })
    for (const afterMinutes of [0, 10_081, 1.5, '5'])
      assert.equal((await change(id, { sleep: { afterMinutes } })).status, 400, String(afterMinutes))
    for (const sleep of [{}, 5, { afterMinutes: 5, more: 1 }]) assert.equal((await change(id, { sleep })).status, 400)
  })

  test('sleep is refused where nothing tells whether somebody plays', async () => {
    const sleep = { afterMinutes: 15 }
    for (const game of [null, 'generic']) {
      const refused = await service.call('POST', '/servers', { body: { name: 'Castle', game, sleep } })
      assert.deepEqual([refused.status, refused.body.errors?.[0].path], [400, '/sleep'], refused.text)
    }
    const { id } = await service.createServer({ game: 'luanti', sleep })
    for (const body of [{ game: 'generic' }, { game: null }, { game: 'generic', sleep: { afterMinutes: 1 } }]) {
      const refused = await change(id, body)
      assert.deepEqual([refused.status, refused.body.errors?.[0].path], [400, '/sleep'], refused.text)
    }
    assert.equal((await change(id, { game: 'generic', sleep: null })).status, 200)
  })
})

// A tenant must not lift the limits that its host has set.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'

onBothEngines('limits of servers', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())

  const games = { memoryBytes: null, cpuPercent: null, processes: null }
  const limits = { diskBytes: 1_000_000, entries: 5000, backups: 1, subdomains: 1, ...games }
  const limitsOf = async (id: string) => (await service.call('GET', `/servers/${id}`)).body.limits

  test('Limits are set and changed with servers:admin, by a token for all servers; servers:write alone changes everything else.', async () => {
    const { id } = await service.createServer({ limits })
    const tenants = [
      await service.mint(['servers:write', 'servers:read'], [id]),
      await service.mint(['*'], [id]),
      await service.mint(['servers:write', 'servers:read']),
    ]
    for (const { token } of tenants) {
      for (const lifted of [
        { diskBytes: null },
        { entries: null },
        { backups: 100 },
        { subdomains: null },
        { diskBytes: 1_000_000 },
      ]) {
        const refused = await service.call('PATCH', `/servers/${id}`, { token, body: { name: 'x', limits: lifted } })
        assert.equal(refused.status, 403)
        assert.equal(refused.body.code, 'forbidden')
      }
      const renamed = await service.call('PATCH', `/servers/${id}`, { token, body: { name: 'Mine', limits: null } })
      assert.equal(renamed.status, 200)
    }
    assert.deepEqual(await limitsOf(id), limits)
    const { body } = await service.call('GET', `/servers/${id}/activity?event=access.denied`)
    assert.ok(body.data.some((entry: { properties: object }) => 'scope' in entry.properties))

    const host = await service.mint(['servers:write', 'servers:admin'])
    const raised = await service.call('PATCH', `/servers/${id}`, {
      token: host.token,
      body: { limits: { backups: 9 } },
    })
    assert.equal(raised.status, 200)
    assert.deepEqual(await limitsOf(id), { ...limits, backups: 9 })
  })

  test('a server is created without limits by servers:write, and with limits by servers:admin', async () => {
    const { token } = await service.mint(['servers:write'])
    const plain = await service.call('POST', '/servers', { token, body: { name: 'Plain' } })
    assert.equal(plain.status, 201)
    const before = (await service.call('GET', '/servers?limit=100')).body.data.length
    const refused = await service.call('POST', '/servers', { token, body: { name: 'Limited', limits } })
    assert.equal(refused.status, 403)
    assert.match(refused.body.detail, /servers:admin/)
    assert.equal((await service.call('GET', '/servers?limit=100')).body.data.length, before)
    const host = await service.mint(['servers:write', 'servers:admin'])
    const made = await service.call('POST', '/servers', { token: host.token, body: { name: 'Limited', limits } })
    assert.deepEqual(made.body.limits, limits)
  })

  test('`servers:admin` is for tokens for all servers, and nobody gives it who has it not', async () => {
    const { id } = await service.createServer()
    const narrow = await service.call('POST', '/tokens', {
      body: { name: 'x', scopes: ['servers:admin'], servers: [id] },
    })
    assert.equal(narrow.status, 400)
    assert.equal(narrow.body.errors[0].path, '/scopes')
    const { token } = await service.mint(['tokens:admin', 'servers:write'])
    const wider = await service.call('POST', '/tokens', {
      token,
      body: { name: 'x', scopes: ['servers:admin'], servers: '*' },
    })
    assert.equal(wider.status, 403)
  })
})

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'

onBothEngines('servers', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())

  test('a server is created with its folder, read, changed and listed', async () => {
    const created = await service.call('POST', '/servers', {
      body: { name: 'Castle', game: 'minecraft-java', port: 25565 },
    })
    assert.equal(created.status, 201)
    assert.equal(created.headers.get('location'), `/v1/game/servers/${created.body.id}`)
    assert.ok(existsSync(join(service.dataDir, 'servers', created.body.id, 'files')))
    const changed = await service.call('PATCH', `/servers/${created.body.id}`, {
      body: { limits: { backups: 3 }, game: null },
    })
    assert.deepEqual(changed.body.limits, { diskBytes: null, backups: 3, subdomains: null })
    assert.equal(changed.body.game, null)
    const read = await service.call('GET', `/servers/${created.body.id}`)
    assert.deepEqual(read.body, changed.body)
  })
})

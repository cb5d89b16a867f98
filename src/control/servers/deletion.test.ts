import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../test/support/backups.ts'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'

onBothEngines('deleting a server', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  const remove = (id: string, more: object = {}) =>
    service.call('DELETE', `/servers/${id}`, { body: { name: 'Castle', ...more } })
  /** Newest first, also of a server that is gone. */
  async function eventsOf(id: string): Promise<string[]> {
    const { data } = (await service.call('GET', '/activity?limit=100')).body
    return data
      .filter((entry: { serverId: string }) => entry.serverId === id)
      .map((entry: { event: string }) => entry.event)
  }

  test('work that is under way has ended before the server is gone, and nothing is recorded after that', async () => {
    const id = await world.server({ 'world.dat': randomBytes(64 * 2 ** 20) })
    const pack = await service.call('POST', `/files/${id}/pack`, { body: { files: ['world.dat'], format: 'zip' } })
    assert.equal(pack.status, 202, pack.text)
    assert.equal((await remove(id)).status, 202)
    await until(async () => (await eventsOf(id)).includes('server.deleted'))
    await until(() =>
      withDatabase(service, async (db) => {
        const job = await db.selectFrom('jobs').select('status').where('id', '=', pack.body.id).executeTakeFirst()
        return job?.status !== 'running' && job?.status !== 'queued'
      }),
    )
    assert.equal((await eventsOf(id))[0], 'server.deleted')
  })
})

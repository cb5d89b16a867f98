// What meets the deletion of a server half-way: entries that the database has not taken yet, restores that have stopped.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../test/support/backups.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { withImmutable, withoutImmutable } from '../../../test/support/immutable.ts'
import { refuseEntriesOf, takeEntriesAgain } from '../../../test/support/refusal.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'

onBothEngines('deleting a server in the middle of something', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  const get = async (id: string) => (await service.call('GET', `/servers/${id}`)).body
  const remove = (id: string, more: object = {}) =>
    service.call('DELETE', `/servers/${id}`, { body: { name: 'Castle', ...more } })
  const reaches = (id: string, status: string) => until(async () => (await get(id)).status === status)
  /** Newest first, also of a server that is gone. */
  async function eventsOf(id: string): Promise<string[]> {
    const { data } = (await service.call('GET', '/activity?limit=100')).body
    return data
      .filter((entry: { serverId: string }) => entry.serverId === id)
      .map((entry: { event: string }) => entry.event)
  }

  for (const [how, last] of [
    [{}, 'server.deleted'],
    [{ purge: true }, 'server.purged'],
  ] as const) {
    test(`a change whose entry is refused for a while has it before ${last}`, async () => {
      const id = await world.server({})
      await refuseEntriesOf(service, 'file.folder_created')
      try {
        assert.equal((await service.call('POST', `/files/${id}/folder`, { body: { name: 'a' } })).status, 201)
        assert.equal((await remove(id, how)).status, 202)
        // Until the deletion has been tried and put off, or done.
        await until(async () => {
          const { data } = (await service.call('GET', `/servers/${id}/jobs`)).body ?? {}
          return !data || data[0].error !== null || data[0].status === 'completed'
        })
        assert.ok(!(await eventsOf(id)).includes(last))
      } finally {
        await takeEntriesAgain(service)
      }
      await until(async () => (await eventsOf(id)).includes(last))
      const events = await eventsOf(id)
      assert.equal(events[0], last)
      assert.equal(events.filter((event) => event === 'file.folder_created').length, 1)
    })
  }

  test('a server whose restore has stopped in the middle can be deleted, brought back, and finished', {
    skip: withoutImmutable(),
  }, async () => {
    const id = await world.server({ a: 'old', 'dir/b': 'old' })
    const backup = await world.backup(id)
    await world.write(id, { a: 'new', 'dir/b': 'new' })
    const job = await withImmutable(join(world.folder(id), 'dir/b'), () =>
      world.restore(id, backup.id, { safetyBackup: false }),
    )
    assert.equal(job.error?.code, 'restore_unfinished')
    const { unfinishedRestore } = await get(id)
    assert.equal((await remove(id)).status, 202)
    await reaches(id, 'deleted')
    await service.restart()
    assert.equal((await service.call('POST', `/servers/${id}/undelete`)).status, 202)
    await reaches(id, 'ready')
    await service.restart()
    assert.deepEqual((await get(id)).unfinishedRestore, unfinishedRestore)
    const finished = await service.call('POST', `/servers/${id}/restore/finish`, { body: { direction: 'back' } })
    assert.equal(finished.status, 202, finished.text)
    assert.equal((await world.jobEnded(id, finished.body.id)).status, 'completed')
    for (const file of ['a', 'dir/b']) assert.equal(await readFile(join(world.folder(id), file), 'utf8'), 'new')
  })
})

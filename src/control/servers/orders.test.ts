// Two requests on one server at the same time, in both orders: the one that comes second decides on what the first has
// left, never on what it read before.
import assert from 'node:assert/strict'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../test/support/backups.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { inOrder } from '../../../test/support/row-lock.ts'
import { type Reply, startTestService, type TestService } from '../../../test/support/service.ts'

onBothEngines('two requests on one server', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  const remove = (id: string) => () => service.call('DELETE', `/servers/${id}`, { body: { name: 'Castle' } })
  const patch = (id: string, body: object) => () => service.call('PATCH', `/servers/${id}`, { body })
  const lock = (id: string, backupId: string) => () => service.call('POST', `/backups/${id}/${backupId}/lock`)
  const create = (id: string) => () => service.call('POST', `/backups/${id}`, { body: {} })
  const restore = (id: string, backupId: string) => () =>
    service.call('POST', `/backups/${id}/${backupId}/restore`, { body: { mode: 'replace' } })
  const statuses = (replies: readonly Reply[]) => replies.map(({ status }) => status)

  test('It is refused with backup_locked while the server has locked backups.', async () => {
    for (const isLockFirst of [true, false]) {
      const id = await world.server({ 'world.dat': 'years of work' })
      const backup = await world.backup(id)
      const requests = [lock(id, backup.id), remove(id)]
      const replies = await inOrder(service, id, isLockFirst ? requests : requests.toReversed())
      const [locked, removed] = statuses(isLockFirst ? replies : replies.toReversed())
      if (locked === 200) {
        assert.equal(removed, 409, 'deleted with a locked backup')
        const kept = (await service.call('GET', `/backups/${id}/${backup.id}`)).body
        assert.deepEqual([kept.status, kept.isLocked], ['completed', true])
      } else assert.deepEqual([locked, removed], [409, 202])
      if (engine === 'postgres') assert.equal(locked === 200, isLockFirst)
    }
  })

  test('of several at once exactly one is accepted, the others are server_busy', async () => {
    const { id } = await service.createServer()
    const replies = await inOrder(service, id, [remove(id), remove(id), remove(id)])
    assert.deepEqual(statuses(replies).sort(), [202, 409, 409])
    for (const reply of replies) if (reply.status === 409) assert.equal(reply.body.code, 'server_busy')
  })

  test('a backup is not begun on a server that is being deleted', async () => {
    for (const isBackupFirst of [true, false]) {
      const id = await world.server({ 'world.dat': 'years of work' })
      const requests = [create(id), remove(id)]
      const replies = await inOrder(service, id, isBackupFirst ? requests : requests.toReversed())
      const [made, removed] = statuses(isBackupFirst ? replies : replies.toReversed())
      assert.equal(removed, 202)
      if (engine === 'postgres') assert.equal(made, isBackupFirst ? 202 : 409)
      else assert.ok(made === 202 || made === 409)
    }
  })

  test('a restore is not begun on a server that is being deleted', async () => {
    for (const isRestoreFirst of [true, false]) {
      const id = await world.server({ 'world.dat': 'years of work' })
      const backup = await world.backup(id)
      const requests = [restore(id, backup.id), remove(id)]
      const replies = await inOrder(service, id, isRestoreFirst ? requests : requests.toReversed())
      const [restored, removed] = statuses(isRestoreFirst ? replies : replies.toReversed())
      assert.equal(removed, 202)
      if (engine === 'postgres') assert.equal(restored, isRestoreFirst ? 202 : 409)
      else assert.ok(restored === 202 || restored === 409)
    }
  })

  const quotaOf = async (id: string) => (await service.call('GET', `/files/${id}/usage`)).body.quotaBytes

  test('the quota that was committed last is the one enforced', async () => {
    for (let round = 0; round < 10; round++) {
      const { id } = await service.createServer()
      const sizes = [10_000_000, 20_000_000, 30_000_000, 40_000_000]
      const replies = await Promise.all(sizes.map((diskBytes) => patch(id, { limits: { diskBytes } })()))
      assert.deepEqual(statuses(replies), [200, 200, 200, 200])
      const { limits } = (await service.call('GET', `/servers/${id}`)).body
      assert.equal(await quotaOf(id), limits.diskBytes)
    }
  })

  test('a change that takes back the one before it counts, though it asks for what was there at first', async () => {
    const { id } = await service.createServer({ limits: { diskBytes: 10_000_000 } })
    const changes = [20_000_000, 10_000_000].map((diskBytes) => patch(id, { limits: { diskBytes } }))
    const [, last] = await inOrder(service, id, changes)
    const { limits } = (await service.call('GET', `/servers/${id}`)).body
    if (engine === 'postgres') assert.equal(limits.diskBytes, last?.body.limits.diskBytes)
    assert.equal(await quotaOf(id), limits.diskBytes)
  })

  test('changes of different limits at the same time are all kept, and each entry tells what it changed', async () => {
    const { id } = await service.createServer()
    await inOrder(service, id, [patch(id, { limits: { backups: 3 } }), patch(id, { limits: { subdomains: 2 } })])
    const { limits } = (await service.call('GET', `/servers/${id}`)).body
    assert.deepEqual([limits.backups, limits.subdomains], [3, 2])
    const { data } = (await service.call('GET', `/servers/${id}/activity?event=server.changed`)).body
    const changes = data.map(
      (entry: { properties: { changes: { limits: object } } }) => entry.properties.changes.limits,
    )
    assert.deepEqual(changes[0].from, changes[1].to, 'the second began where the first had ended')
  })

  test('A PATCH is answered once it is committed.', async () => {
    const { id } = await service.createServer()
    const inTheWay = join(service.dataDir, 'servers', id, 'quota.json.new')
    await mkdir(inTheWay)
    const reply = await patch(id, { limits: { diskBytes: 5_000_000 } })()
    assert.equal(reply.status, 200, reply.text)
    assert.equal(reply.body.limits.diskBytes, 5_000_000)
    await rm(inTheWay, { recursive: true })
    await service.restart()
    assert.equal(await quotaOf(id), 5_000_000)
  })
})

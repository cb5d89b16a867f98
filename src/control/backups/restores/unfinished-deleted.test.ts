// What else happens to a server while a restore into it has stopped in the middle: it is deleted and brought back, its
// trash is emptied, the backup goes, two people finish at once, the journal is damaged. Nothing is lost, nothing is stuck.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../../test/support/backups.ts'
import { onBothEngines } from '../../../../test/support/engines.ts'
import { withImmutable, withoutImmutable } from '../../../../test/support/immutable.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'

const skip = withoutImmutable()

onBothEngines('a server with an unfinished restore', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  const text = (server: string, path: string) => readFile(join(world.folder(server), path), 'utf8')
  const serverOf = async (server: string) => (await service.call('GET', `/servers/${server}`)).body
  const reaches = (server: string, status: string) => until(async () => (await serverOf(server)).status === status)
  const choose = (server: string, direction: 'forward' | 'back') =>
    service.call('POST', `/servers/${server}/restore/finish`, { body: { direction } })

  async function assertFinished(server: string, direction: 'forward' | 'back', contents: string[]): Promise<void> {
    const reply = await choose(server, direction)
    assert.equal(reply.status, 202, reply.text)
    const job = await world.jobEnded(server, reply.body.id)
    assert.equal(job.status, 'completed', JSON.stringify(job.error))
    assert.deepEqual(await Promise.all(['a', 'b'].map((path) => text(server, path))), contents)
    assert.equal((await serverOf(server)).unfinishedRestore, null)
  }

  /** `a` is displaced already, `b` cannot be. */
  async function stopped(): Promise<{ server: string; id: string }> {
    const server = await world.server({ a: 'old-1', b: 'old-2' })
    const { id } = await world.backup(server)
    await world.write(server, { a: 'new-1', b: 'new-2' })
    const job = await withImmutable(join(world.folder(server), 'b'), () =>
      world.restore(server, id, { safetyBackup: false }),
    )
    assert.equal(job.error?.code, 'restore_unfinished')
    return { server, id }
  }

  test('is deleted and brought back as it is, and can be finished then', { skip }, async () => {
    for (const direction of ['back', 'forward'] as const) {
      const { server } = await stopped()
      const before = await serverOf(server)
      assert.equal((await service.call('DELETE', `/servers/${server}`, { body: { name: 'Castle' } })).status, 202)
      await reaches(server, 'deleted')
      assert.equal((await choose(server, direction)).body.code, 'server_deleted')
      await service.restart()
      assert.equal((await service.call('POST', `/servers/${server}/undelete`)).status, 202)
      await reaches(server, 'ready')
      assert.deepEqual((await serverOf(server)).unfinishedRestore, before.unfinishedRestore)
      const refused = await service.call('POST', `/files/${server}/folder`, { body: { name: 'x' } })
      assert.equal(refused.body.code, 'server_busy')
      await assertFinished(server, direction, direction === 'back' ? ['new-1', 'new-2'] : ['old-1', 'old-2'])
    }
  })

  test('is purged', { skip }, async () => {
    const { server } = await stopped()
    const body = { name: 'Castle', purge: true }
    assert.equal((await service.call('DELETE', `/servers/${server}`, { body })).status, 202)
    await until(async () => (await service.call('GET', `/servers/${server}`)).status === 404)
    for (const kind of ['servers', 'held']) assert.ok(!existsSync(join(service.dataDir, kind, server)))
  })

  test('loses nothing to an emptied trash and a deleted backup', { skip }, async () => {
    for (const direction of ['back', 'forward'] as const) {
      const { server, id } = await stopped()
      const emptied = await service.call('DELETE', `/files/${server}/trash`)
      assert.deepEqual([emptied.status, emptied.body.freedBytes], [200, 0], emptied.text)
      const removed = await service.call('DELETE', `/backups/${server}/${id}`)
      assert.ok(removed.status < 300, removed.text)
      await until(async () => (await service.call('GET', `/backups/${server}/${id}`)).status === 404)
      await assertFinished(server, direction, direction === 'back' ? ['new-1', 'new-2'] : ['old-1', 'old-2'])
    }
  })

  test('is finished by one of several who choose at once', { skip }, async () => {
    const { server } = await stopped()
    const replies = await Promise.all(
      (['forward', 'back', 'forward', 'back'] as const).map((way) => choose(server, way)),
    )
    const taken = replies.filter(({ status }) => status === 202)
    assert.equal(taken.length, 1)
    for (const { status, body } of replies)
      if (status !== 202) assert.ok(['server_busy', 'not_found'].includes(body.code), body.code)
    const job = await world.jobEnded(server, taken[0]?.body.id)
    assert.equal(job.status, 'completed', JSON.stringify(job.error))
    const isForward = replies.findIndex(({ status }) => status === 202) % 2 === 0
    assert.equal(await text(server, 'a'), isForward ? 'old-1' : 'new-1')
    assert.equal((await choose(server, 'back')).body.code, 'not_found')
  })

  test('keeps its whole trash when its journal is damaged, says so, and starts', { skip }, async () => {
    const { server } = await stopped()
    const staging = join(service.dataDir, 'servers', server, 'staging')
    const [name = ''] = await readdir(staging)
    await service.halt()
    const head = await readFile(join(staging, name, 'stopped'), 'utf8')
    await writeFile(join(staging, name, 'stopped'), head.slice(0, head.length / 2))
    await service.restart()
    assert.equal((await service.call('DELETE', `/files/${server}/trash`)).body.freedBytes, 0)
    for (const direction of ['forward', 'back'] as const) {
      const job = await world.jobEnded(server, (await choose(server, direction)).body.id)
      assert.equal(job.error?.code, 'restore_unfinished')
      assert.match(job.error.detail, /a restore journal is damaged/)
      assert.equal((await service.call('DELETE', `/files/${server}/trash`)).body.freedBytes, 0)
    }
    assert.equal(await text(server, 'b'), 'new-2')
    const [item] = (await service.call('GET', `/files/${server}/trash`)).body.data
    assert.equal(item.path, '/a')
  })
})

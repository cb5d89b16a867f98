// Which runtime a server has, through the front door.
import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { onBothEngines } from '../../../test/support/engines.ts'
import { gameFile } from '../../../test/support/games.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'

const template = (id: string, runtimes: string[]) => ({
  ...{
    format: 1,
    id,
    name: id,
    runtimes,
    start: { args: ['./start'] },
    stop: [{ command: 'stop', timeoutSeconds: 5 }],
  },
  ...(runtimes.includes('container')
    ? { images: ['alpine:3', 'debian:12'].map((image) => ({ name: image, image })) }
    : {}),
})

onBothEngines('the runtime of a server', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine, env: { GAMEKEEPER_CONTAINER_SOCKET: '/nowhere/engine.sock' } })
    for (const [id, runtimes] of Object.entries({
      boxed: ['container'],
      either: ['process', 'container'],
      bare: ['process'],
    }))
      await service.call('POST', '/templates', { body: template(id, runtimes) })
  })
  after(() => service.stop())

  const shown = (kind: string, image: string | null) => ({ kind, image, isolation: null, user: null, enforced: null })
  const change = (id: string, body: object, options = {}) =>
    service.call('PATCH', `/servers/${id}`, { body, ...options })
  const create = async (body: object) => {
    const { status, body: made, text } = await service.call('POST', '/servers', { body: { name: 'Castle', ...body } })
    assert.equal(status, 201, text)
    return made
  }

  test('it is a process where the template allows that, else a container, and what was chosen is shown', async () => {
    assert.equal((await create({})).runtime, null)
    assert.equal((await create({ game: 'either' })).runtime, null)
    assert.deepEqual((await create({ game: 'boxed' })).runtime, shown('container', null))
    const chosen = await create({ game: 'either', runtime: { kind: 'container', image: 'debian:12' } })
    assert.deepEqual(chosen.runtime, shown('container', 'debian:12'))
    const other = await change(chosen.id, { game: 'bare' })
    assert.equal(other.body.runtime, null, 'the new template runs as a process only')
    const back = await change(chosen.id, { game: 'either', runtime: { kind: 'container', image: null } })
    assert.deepEqual(back.body.runtime, shown('container', null))
    assert.equal((await change(chosen.id, { runtime: null })).body.runtime, null)
    const { body } = await service.call('GET', `/servers/${chosen.id}/activity?event=server.changed`)
    assert.deepEqual(body.data[0].properties.changes.runtime, { from: shown('container', null), to: null })
  })

  test('what the template does not take, and what is no image, is refused', async () => {
    const wrong: [object, string][] = [
      [{ game: 'boxed', runtime: { kind: 'process' } }, '/runtime/kind'],
      [{ game: 'bare', runtime: { kind: 'container', image: 'alpine' } }, '/runtime/kind'],
      [{ game: 'either', runtime: { kind: 'process', image: 'alpine' } }, '/runtime/image'],
      [{ runtime: { kind: 'container' } }, '/runtime/image'],
      ...['--privileged', 'a b', 'http://x/y', 'user:pass@host/x', '../x', 'A', '', 'x'.repeat(256)].map(
        (image): [object, string] => [{ game: 'either', runtime: { kind: 'container', image } }, '/runtime/image'],
      ),
    ]
    for (const [body, path] of wrong) {
      const reply = await service.call('POST', '/servers', { body: { name: 'Castle', ...body } })
      assert.deepEqual([reply.status, reply.body.errors?.[0]?.path], [400, path], JSON.stringify(body))
    }
  })

  test('a token for one server runs the images of its template and no others', async () => {
    const { id } = await create({ game: 'either' })
    const { token } = await service.mint(['servers:write'], [id])
    const listed = await change(id, { runtime: { kind: 'container', image: 'debian:12' } }, { token })
    assert.equal(listed.status, 200, listed.text)
    const other = await change(id, { runtime: { kind: 'container', image: 'debian:13' } }, { token })
    assert.deepEqual([other.status, other.body.code], [403, 'forbidden'])
    assert.equal((await change(id, { runtime: { kind: 'container', image: 'debian:13' } })).status, 200)
  })

  test('without an engine a start says so', async () => {
    const { id } = await create({ game: 'boxed' })
    copyFileSync(gameFile('plain'), join(service.dataDir, 'servers', id, 'files', 'start'))
    const { status, body } = await service.call('POST', `/servers/${id}/power`, { body: { action: 'start' } })
    assert.deepEqual([status, body.code], [409, 'isolation_missing'])
  })
})

// How deep a server's files may be: what is asked for is refused in time, and what a game makes deeper stops nothing.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { MAX_DEPTH } from '../src/contract/fixed-limits.ts'
import { makeDeepTree } from './support/deep-trees.ts'
import { startTestService, type TestService } from './support/service.ts'
import { until } from './support/until.ts'

const GAME_LEVELS = 5000
/** Already longer than any path. */
const FEWER_LEVELS = 2500

const down = (levels: number) => '/d'.repeat(levels)

let service: TestService
before(async () => {
  service = await startTestService()
})
after(async () => {
  await service.halt()
  // What is deeper than any path is left to a program that can remove it, should the service have failed to.
  execFileSync('rm', ['-rf', service.dataDir])
})

async function newServer() {
  const { id } = await service.createServer()
  const files = join(service.dataDir, 'servers', id, 'files')
  return { id, files, at: (path: string) => join(files, path) }
}

const call = (method: string, path: string, body?: unknown) =>
  service.call(method, path, body === undefined ? {} : { body })

async function jobEnded(id: string, jobId: string) {
  return await until(async () => {
    const { body } = await service.call('GET', `/servers/${id}/jobs/${jobId}`)
    return body.status !== 'queued' && body.status !== 'running' && body
  })
}

async function backupEnded(id: string) {
  const { body } = await service.call('POST', `/backups/${id}`, { body: {} })
  return await until(async () => {
    const { body: backup } = await service.call('GET', `/backups/${id}/${body.id}`)
    return (backup.status === 'completed' || backup.status === 'failed') && backup
  })
}

test(`a path has at most ${MAX_DEPTH} names, whatever it is asked for`, async () => {
  const { id, files } = await newServer()
  const [most, tooDeep] = [down(MAX_DEPTH), down(MAX_DEPTH + 1)]
  const folder = (path: string, name: string) => service.call('POST', `/files/${id}/folder`, { body: { path, name } })
  const content = (path: string) => service.call('PUT', `/files/${id}/content?path=${path}`, { body: 'x' })
  for (const reply of [
    await folder(down(599), 'd'),
    await folder(down(MAX_DEPTH), 'd'),
    await content(tooDeep),
    await content(down(2000)),
    await service.call('GET', `/files/${id}?path=${tooDeep}`),
    await service.call('DELETE', `/files/${id}`, { body: { files: [tooDeep] } }),
    await service.call('DELETE', `/files/${id}`, { body: { root: most, files: ['d'] } }),
    await service.call('POST', `/files/${id}/copy`, { body: { location: tooDeep } }),
    await service.call('POST', `/files/${id}/move`, { body: { moves: [{ from: '/a', to: tooDeep }] } }),
  ])
    assert.deepEqual([reply.status, reply.body.code], [400, 'invalid_path'], reply.text)
  assert.deepEqual(readdirSync(files), [])

  assert.equal((await folder(down(MAX_DEPTH - 1), 'd')).status, 201)
  assert.equal((await service.call('GET', `/files/${id}?path=${most}`)).status, 200)
  await service.call('POST', `/files/${id}/folder`, { body: { path: '/', name: 'top' } })
  const deeper = { moves: [{ from: '/d', to: '/top/d' }] }
  const moved = await service.call('POST', `/files/${id}/move`, { body: deeper })
  assert.deepEqual([moved.status, moved.body.code], [400, 'invalid_path'])
  const sideways = await service.call('POST', `/files/${id}/move`, { body: { moves: [{ from: '/d', to: '/e' }] } })
  assert.equal(sideways.status, 200)
})

test('an archive with a path that is too deep is refused, and leaves nothing', async () => {
  const { id, files, at } = await newServer()
  mkdirSync(at('made'))
  makeDeepTree(at('made'), MAX_DEPTH + 2)
  execFileSync('tar', ['-cf', at('deep.tar'), '-C', at('made'), 'd'])
  execFileSync('rm', ['-rf', at('made')])
  const { body } = await service.call('POST', `/files/${id}/unpack`, { body: { path: '/deep.tar', directory: '/' } })
  const job = await jobEnded(id, body.id)
  assert.deepEqual([job.status, job.error.code], ['failed', 'invalid_archive'])
  assert.deepEqual(readdirSync(files), ['deep.tar'])
})

describe('What a game nests deeper by itself stops nothing', () => {
  test('usage, listing, writing, copying, packing, backup, restore and deletion of the server go on', async () => {
    const { id, files, at } = await newServer()
    mkdirSync(at('game'))
    makeDeepTree(at('game'), GAME_LEVELS)
    mkdirSync(at('world'))
    writeFileSync(at('world/level.dat'), 'the world')

    const usage = (await call('GET', `/files/${id}/usage`)).body
    assert.ok(usage.usedBytes >= 8192, 'the file at the bottom counts')
    assert.equal((await call('GET', `/files/${id}?path=/game`)).body.data.length, 1)
    assert.equal((await call('PUT', `/files/${id}/content?path=/new.txt`, 'new')).status, 201)
    assert.equal((await call('POST', `/files/${id}/copy`, { location: '/world' })).status, 201)
    const deepCopy = await call('POST', `/files/${id}/copy`, { location: '/game' })
    assert.deepEqual([deepCopy.status, deepCopy.body.code], [400, 'invalid_path'])
    assert.equal((await call('GET', `/files/${id}/search?q=level.dat`)).body.data.length, 2)

    const backup = await backupEnded(id)
    assert.equal(backup.status, 'completed')
    assert.equal(backup.warnings.length, 1)
    assert.match(backup.warnings[0], /deeper/)
    writeFileSync(at('world/level.dat'), 'broken')
    const restore = await call('POST', `/backups/${id}/${backup.id}/restore`, { mode: 'replace' })
    assert.equal((await jobEnded(id, restore.body.id)).status, 'completed')
    assert.equal(execFileSync('cat', [at('world/level.dat')], { encoding: 'utf8' }), 'the world')
    assert.equal(execFileSync('find', [at('game'), '-name', 'bottom.txt'], { encoding: 'utf8' }).length > 10_000, true)

    const packed = await call('POST', `/files/${id}/pack`, {
      files: ['world', 'game'],
      format: 'tar',
      target: '/p.tar',
    })
    assert.equal((await jobEnded(id, packed.body.id)).status, 'completed')
    assert.deepEqual(readdirSync(files).sort(), ['game', 'new.txt', 'p.tar', 'world', 'world copy'])

    const deleted = await call('DELETE', `/servers/${id}`, { name: 'Castle', purge: true })
    assert.equal(deleted.status, 202)
    const gone = async () => (await call('GET', `/servers/${id}`)).status === 404
    await until(gone)
    for (const folder of ['servers', 'removed', 'held'].map((name) => join(service.dataDir, name)))
      assert.ok(!existsSync(join(folder, id)), folder)
  })

  test('a restore displaces it into the trash, from where it comes back, and the trash is emptied of it', async () => {
    const { id, files, at } = await newServer()
    writeFileSync(at('kept'), 'kept')
    const backup = await backupEnded(id)
    mkdirSync(at('game/inner'), { recursive: true })
    makeDeepTree(at('game/inner'), FEWER_LEVELS)
    assert.equal((await call('POST', `/files/${id}/move`, { moves: [{ from: '/game/inner', to: '/up' }] })).status, 200)
    const restore = await call('POST', `/backups/${id}/${backup.id}/restore`, { mode: 'replace' })
    assert.equal((await jobEnded(id, restore.body.id)).status, 'completed')
    assert.deepEqual(readdirSync(files), ['kept'])
    const { data: trashed } = (await call('GET', `/files/${id}/trash`)).body
    const item = trashed.find(({ path }: { path: string }) => path === '/up')
    assert.equal((await call('POST', `/files/${id}/trash/${item.id}/restore`)).status, 200)
    assert.deepEqual((await call('DELETE', `/files/${id}`, { files: ['up'] })).body.deleted, ['up'])
    const emptied = await call('DELETE', `/files/${id}/trash`)
    assert.equal(emptied.status, 200)
    assert.ok(emptied.body.freedBytes >= 4096)
    assert.deepEqual(readdirSync(join(service.dataDir, 'servers', id, 'trash')), [])
    assert.deepEqual(readdirSync(files), ['kept'])
  })
})

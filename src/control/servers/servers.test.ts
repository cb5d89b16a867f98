import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'
import { DEFAULT_ENTRIES_MAX } from '../../contract/fixed-limits.ts'

const OF_GAMES = { memoryBytes: null, cpuPercent: null, processes: null }

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
    assert.deepEqual(changed.body.limits, {
      diskBytes: null,
      entries: DEFAULT_ENTRIES_MAX,
      backups: 3,
      subdomains: null,
      ...OF_GAMES,
    })
    assert.equal(changed.body.game, null)
    const read = await service.call('GET', `/servers/${created.body.id}`)
    assert.deepEqual(read.body, changed.body)
  })

  const get = (id: string) => service.call('GET', `/servers/${id}`)
  const patch = (id: string, body: object) => service.call('PATCH', `/servers/${id}`, { body })
  const remove = (id: string, name: string) => service.call('DELETE', `/servers/${id}`, { body: { name, purge: true } })
  const folder = (id: string) => join(service.dataDir, 'servers', id)
  const untilGone = (id: string) => until(async () => (await get(id)).status === 404)

  test('every field is kept as it was given', async () => {
    const body = {
      name: '  Zoë’s 城 🏰 ',
      description: 'Two\nlines\tand a tab',
      game: 'factorio',
      variables: { MAX_PLAYERS: 8, SERVER_NAME: '城' },
      port: 65535,
      limits: {
        ...{ diskBytes: Number.MAX_SAFE_INTEGER, entries: 7, backups: 0, subdomains: 1_000_000 },
        ...{ memoryBytes: 2 ** 32, cpuPercent: 150, processes: 99 },
      },
      autoRestart: false,
      sleep: { afterMinutes: 20 },
      labels: { owner: 'anna', 'a/b.c-d': '', constructor: 'x' },
    }
    const created = await service.call('POST', '/servers', { body })
    assert.equal(created.status, 201, created.text)
    const { id, createdAt, updatedAt, status, deletion, diskUsage, unfinishedRestore, power, runtime, ...rest } =
      created.body
    assert.deepEqual(rest, body)
    assert.match(id, /^srv_[0-9a-z]{26}$/)
    assert.equal(status, 'ready')
    assert.deepEqual([deletion, diskUsage, unfinishedRestore, runtime], [null, null, null, null])
    assert.deepEqual(power, { state: 'stopped', since: null, step: null, exit: null })
    assert.equal(createdAt, updatedAt)
    assert.deepEqual((await get(id)).body, created.body)
  })

  test('what is absent in a change stays, null clears, labels are replaced as a whole', async () => {
    const body = {
      name: 'A',
      description: 'd',
      port: 1,
      limits: { backups: 3, diskBytes: 5 },
      labels: { a: '1', b: '2' },
    }
    const { id } = (await service.call('POST', '/servers', { body })).body
    const changed = (await patch(id, { port: null, limits: { backups: null }, labels: { c: '3' } })).body
    assert.equal(changed.name, 'A')
    assert.equal(changed.description, 'd')
    assert.equal(changed.port, null)
    const others = { backups: null, subdomains: null, ...OF_GAMES }
    assert.deepEqual(changed.limits, { diskBytes: 5, entries: DEFAULT_ENTRIES_MAX, ...others })
    assert.deepEqual(changed.labels, { c: '3' })
    assert.ok(changed.updatedAt >= changed.createdAt)
    for (const wrong of [{}, { name: null }, { id: 'x' }, { createdAt: 'x' }, { limits: null }]) {
      assert.equal((await patch(id, wrong)).status, 400, JSON.stringify(wrong))
    }
    assert.deepEqual((await get(id)).body, changed)
  })

  test('changes at the same time are all kept', async () => {
    const { id } = await service.createServer()
    const changes = [
      { name: 'B' },
      { port: 7 },
      { description: 'x' },
      { limits: { backups: 1 } },
      { limits: { subdomains: 2 } },
    ]
    const replies = await Promise.all(changes.map((change) => patch(id, change)))
    assert.ok(replies.every((reply) => reply.status === 200))
    const { name, port, description, limits } = (await get(id)).body
    assert.deepEqual(
      { name, port, description, limits },
      {
        name: 'B',
        port: 7,
        description: 'x',
        limits: { diskBytes: null, entries: DEFAULT_ENTRIES_MAX, backups: 1, subdomains: 2, ...OF_GAMES },
      },
    )
  })

  test('lists are newest first, paged, and filtered by game and by part of the name', async () => {
    const names = ['Page 1', 'Page 2', 'Page 3', 'Page 4', '50%_\\']
    for (const name of names) await service.createServer({ name, game: name.endsWith('1') ? 'rust' : 'valheim' })
    const list = async (query: string) => (await service.call('GET', `/servers?${query}`)).body
    const named = async (query: string) => (await list(query)).data.map((server: { name: string }) => server.name)
    assert.deepEqual(await named('q=pAgE'), ['Page 4', 'Page 3', 'Page 2', 'Page 1'])
    assert.deepEqual(await named('q=Page&game=rust'), ['Page 1'])
    assert.deepEqual(await named(`q=${encodeURIComponent('%_')}`), ['50%_\\'])
    assert.deepEqual(await named(`q=${encodeURIComponent('\\')}`), ['50%_\\'])
    const first = await list('q=Page&limit=3')
    assert.deepEqual(
      first.data.map((server: { name: string }) => server.name),
      ['Page 4', 'Page 3', 'Page 2'],
    )
    await service.createServer({ name: 'Page 5' })
    const second = await list(`q=Page&limit=3&cursor=${first.nextCursor}`)
    assert.deepEqual(
      second.data.map((server: { name: string }) => server.name),
      ['Page 1'],
    )
    assert.equal(second.nextCursor, null)
  })

  test('a deletion needs the name, runs as a job and takes the files', async () => {
    const { id } = await service.createServer({ name: 'Doomed' })
    await writeFile(join(folder(id), 'files', 'world.dat'), 'x')
    for (const body of [{ name: 'doomed' }, { name: '' }, {}, undefined, { name: 'Doomed', force: true }]) {
      const refused = await service.call('DELETE', `/servers/${id}`, { body })
      assert.equal(refused.status, 400, JSON.stringify(body))
    }
    assert.ok(existsSync(join(folder(id), 'files', 'world.dat')))
    const started = await remove(id, 'Doomed')
    assert.equal(started.status, 202)
    assert.equal(started.body.kind, 'server.delete')
    await untilGone(id)
    assert.ok(!existsSync(folder(id)))
    assert.deepEqual(await readdir(join(service.dataDir, 'removed')), [])
    const events = (await service.call('GET', '/activity?limit=100')).body.data
      .filter((entry: { serverId: string }) => entry.serverId === id)
      .map((entry: { event: string }) => entry.event)
    assert.deepEqual(events, ['server.purged', 'server.deleted', 'server.deletion_started', 'server.created'])
    assert.equal((await remove(id, 'Doomed')).status, 404)
  })

  test('a server that is being deleted takes no changes; a deletion cannot be cancelled', async () => {
    const { id } = await service.createServer({ name: 'Doomed' })
    await withDatabase(service, (db) =>
      db.updateTable('servers').set({ status: 'deleting' }).where('id', '=', id).execute(),
    )
    for (const reply of [await patch(id, { name: 'x' }), await remove(id, 'Doomed')]) {
      assert.equal(reply.status, 409)
      assert.equal(reply.body.code, 'server_busy')
    }
    assert.equal((await get(id)).body.status, 'deleting')
  })

  test('a deletion that a crash cut short is finished at the next start', async () => {
    const { id } = await service.createServer({ name: 'Doomed' })
    await writeFile(join(folder(id), 'files', 'world.dat'), 'x')
    const kept = await service.createServer({ name: 'Kept' })
    await service.halt()
    // As a crash leaves it: the job is marked as running by a process that is no more.
    await withDatabase(service, async (db) => {
      await db.updateTable('servers').set({ status: 'deleting' }).where('id', '=', id).execute()
      const actor = {
        type: 'token',
        id: 'tok_admin',
        name: 'admin',
        scopes: ['*'],
        servers: '*',
        expiresAt: null,
        source: 'api',
        ip: null,
        userAgent: null,
        requestId: null,
      }
      await db
        .insertInto('jobs')
        .values({
          id: 'job_crashed',
          kind: 'server.delete',
          server_id: id,
          status: 'running',
          cancel: 0,
          input: JSON.stringify({ actor, input: { isPurge: true } }),
          progress: '{"filesDone":0,"filesTotal":null,"bytesDone":0,"bytesTotal":null}',
          result: null,
          error: null,
          crashes: 0,
          attempts: 1,
          due_at: 0,
          owner: 'req_dead',
          lease_until: Date.now() - 1,
          created_at: 0,
          started_at: 0,
          finished_at: null,
        })
        .execute()
    })
    await service.restart()
    await untilGone(id)
    assert.ok(!existsSync(folder(id)))
    assert.equal((await get(kept.id)).status, 200)
    assert.equal((await service.call('GET', '/activity/verify')).body.intact, true)
  })

  test('folders that a crash during creation left are swept, folders with files never', async () => {
    const { id } = await service.createServer()
    const [empty, full] = ['srv_leftempty', 'srv_leftfull'].map(folder) as [string, string]
    for (const part of ['files', 'trash', 'staging'])
      for (const left of [empty, full]) await mkdir(join(left, part), { recursive: true })
    await writeFile(join(full, 'files', 'world.dat'), 'years of work')
    await service.restart()
    assert.ok(!existsSync(empty))
    assert.ok(existsSync(join(full, 'files', 'world.dat')))
    assert.ok(existsSync(join(folder(id), 'files')))
  })

  test('jobs are listed, read and refused to others', async () => {
    const { id } = await service.createServer()
    assert.deepEqual((await service.call('GET', `/servers/${id}/jobs`)).body, { data: [], nextCursor: null })
    assert.equal((await service.call('GET', `/servers/${id}/jobs/job_none`)).status, 404)
    assert.equal((await service.call('DELETE', `/servers/${id}/jobs/job_none`)).status, 404)
    assert.equal((await service.call('GET', `/servers/${id}/jobs?status=nonsense`)).status, 400)
  })
})

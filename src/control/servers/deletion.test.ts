import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../test/support/backups.ts'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { inOrder } from '../../../test/support/row-lock.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { ask, LOCAL_DNS, subdomainCalls } from '../../../test/support/subdomains.ts'
import { until } from '../../../test/support/until.ts'

const ZONES = JSON.stringify([{ zone: 'play.test', provider: 'embedded', target: '203.0.113.7', ttl: 60 }])

onBothEngines('deleting a server', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine, env: { GAMEKEEPER_ZONES: ZONES, ...LOCAL_DNS } })
    world = createWorld(service)
  })
  after(() => service.stop())

  const get = async (id: string) => (await service.call('GET', `/servers/${id}`)).body
  const remove = (id: string, more: object = {}) =>
    service.call('DELETE', `/servers/${id}`, { body: { name: 'Castle', ...more } })
  const undelete = (id: string) => service.call('POST', `/servers/${id}/undelete`)
  const reaches = (id: string, status: string) => until(async () => (await get(id)).status === status)
  const purged = (id: string) => until(async () => (await service.call('GET', `/servers/${id}`)).status === 404)
  const folder = (kind: 'servers' | 'held', id: string) => join(service.dataDir, kind, id)
  const listed = async (query: string) =>
    (await service.call('GET', `/servers?limit=100${query}`)).body.data.map((server: { id: string }) => server.id)
  async function deleteAndWait(id: string): Promise<void> {
    const reply = await remove(id)
    assert.equal(reply.status, 202, reply.text)
    await reaches(id, 'deleted')
  }
  /** Newest first, also of a server that is gone. */
  async function eventsOf(id: string): Promise<string[]> {
    const { data } = (await service.call('GET', '/activity?limit=100')).body
    return data
      .filter((entry: { serverId: string }) => entry.serverId === id)
      .map((entry: { event: string }) => entry.event)
  }

  test('The job ends work that is under way', async () => {
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

  test('Nothing of it is lost: files, trash, backups, schedules, retention, labels, limits and names are kept, and nobody else gets the names.', async () => {
    const settings = {
      game: 'minecraft-java',
      port: 25565,
      labels: { owner: 'anna' },
      limits: { diskBytes: 50_000_000 },
    }
    const id = await world.server({ 'world/region.mca': 'years of work' }, settings)
    const calls = subdomainCalls(service, () => id)
    const backup = await world.backup(id)
    const name = `castle${engine}`
    const subdomain = (await calls.create(name)).body
    await calls.settled(subdomain.id)
    await service.call('PUT', `/backups/${id}/retention`, { body: { keepLast: 3 } })
    await service.call('POST', `/backups/${id}/schedules`, { body: { name: 'Nightly', cron: '0 4 * * *' } })
    await service.call('DELETE', `/files/${id}`, { body: { root: '/world', files: ['region.mca'] } })
    const before = await get(id)
    const plan = await service.call('GET', `/servers/${id}/deletion`)
    assert.equal(plan.status, 200, plan.text)
    assert.deepEqual(plan.body.frees.backups, { count: 1, storedBytes: backup.storedBytes })
    assert.deepEqual(plan.body.frees.subdomains, [`${name}.play.test`])
    assert.ok(plan.body.frees.trash.sizeBytes > 0)
    const upload = (await service.call('GET', `/files/${id}/upload`)).body

    const job = (await remove(id)).body
    await reaches(id, 'deleted')
    const deleted = await get(id)
    assert.deepEqual(deleted.deletion.frees, plan.body.frees)
    assert.equal(Date.parse(deleted.deletion.purgeAt) - Date.parse(deleted.deletion.deletedAt), 7 * 24 * 3600_000)
    assert.deepEqual((await world.jobEnded(id, job.id)).result, deleted.deletion)
    assert.ok(!(await listed('')).includes(id))
    assert.ok((await listed('&deleted=true')).includes(id))
    assert.ok(!existsSync(folder('servers', id)))
    assert.equal(await ask(service.dns, 'A', `${name}.play.test`), 'NXDOMAIN')
    assert.equal((await calls.read(subdomain.id)).body.status, 'withdrawn')

    // Nothing gets at it, and nobody gets its name.
    const form = new FormData()
    form.append('files', new Blob(['x']), 'late.txt')
    assert.equal((await fetch(upload.url, { method: 'POST', body: form })).status, 404)
    const refused: [string, string, object?][] = [
      ['PATCH', `/servers/${id}`, { name: 'x' }],
      ['POST', `/backups/${id}`, {}],
      ['POST', `/backups/${id}/${backup.id}/lock`],
      ['DELETE', `/backups/${id}/${backup.id}`],
      ['POST', `/backups/${id}/${backup.id}/restore`, { mode: 'replace' }],
      ['POST', `/files/${id}/folder`, { name: 'x' }],
      ['GET', `/files/${id}`],
      ['GET', `/files/${id}/upload`],
      ['POST', `/subdomains/${id}/subdomains`, { name: 'other', zone: 'play.test' }],
      ['DELETE', `/subdomains/${id}/subdomains/${subdomain.id}`],
      ['DELETE', `/servers/${id}`, { name: 'Castle' }],
    ]
    for (const [method, path, body] of refused) {
      const reply = await service.call(method, path, body ? { body } : {})
      assert.deepEqual([reply.status, reply.body.code], [409, 'server_deleted'], `${method} ${path}`)
    }
    const other = await service.createServer()
    const stolen = await subdomainCalls(service, () => other.id).create(name)
    assert.equal(stolen.body.code, 'subdomain_taken')

    await service.restart()
    const back = await undelete(id)
    assert.equal(back.status, 202, back.text)
    await reaches(id, 'ready')
    const { updatedAt: _, diskUsage: __, ...now } = await get(id)
    const { updatedAt: _a, diskUsage: _b, ...then } = before
    assert.deepEqual(now, then)
    await calls.settled(subdomain.id)
    assert.equal(await ask(service.dns, 'A', `${name}.play.test`), '203.0.113.7')
    assert.equal((await service.call('GET', `/backups/${id}/retention`)).body.keepLast, 3)
    assert.equal((await service.call('GET', `/backups/${id}/schedules`)).body.data.length, 1)
    const [trashed] = (await service.call('GET', `/files/${id}/trash`)).body.data
    assert.equal((await service.call('POST', `/files/${id}/trash/${trashed.id}/restore`)).status, 200)
    assert.equal(await readFile(join(world.folder(id), 'world', 'region.mca'), 'utf8'), 'years of work')
    assert.equal((await world.restore(id, backup.id, { mode: 'replace' })).status, 'completed')
    assert.equal((await service.call('GET', `/files/${id}/usage`)).body.quotaBytes, 50_000_000)
    assert.equal((await undelete(id)).body.code, 'already_exists')
    const events = (await eventsOf(id)).filter((event) => event.startsWith('server.')).toReversed()
    assert.deepEqual(events, ['server.created', 'server.deletion_started', 'server.deleted', 'server.undeleted'])
  })

  test('A deleted server keeps everything until it is purged; server.purged is the last entry of its chain.', async () => {
    const id = await world.server({ 'world.dat': 'x' })
    const backup = await world.backup(id)
    await deleteAndWait(id)
    await withDatabase(service, (db) => db.updateTable('servers').set({ purge_at: 1 }).where('id', '=', id).execute())
    await service.restart()
    await purged(id)
    for (const kind of ['servers', 'held'] as const) assert.ok(!existsSync(folder(kind, id)))
    assert.equal((await eventsOf(id))[0], 'server.purged')
    const manifests = await readdir(join(service.dataDir, 'backups'), { recursive: true })
    assert.ok(!manifests.some((path) => path.includes(backup.id) || path.includes(id)))
    assert.equal((await undelete(id)).status, 404)
    assert.equal((await service.call('GET', '/activity/verify')).body.intact, true)
  })

  test('purge deletes for good at once, also what is held; locked backups refuse it', async () => {
    const fresh = await world.server({ 'world.dat': 'x' })
    assert.equal((await remove(fresh, { purge: true })).status, 202)
    await purged(fresh)
    assert.ok(!existsSync(folder('held', fresh)))
    assert.deepEqual((await eventsOf(fresh)).slice(0, 2), ['server.purged', 'server.deleted'])

    const held = await world.server({ 'world.dat': 'x' })
    const backup = await world.backup(held)
    await service.call('POST', `/backups/${held}/${backup.id}/lock`)
    for (const more of [{}, { purge: true }])
      assert.equal((await remove(held, more)).body.code, 'backup_locked', JSON.stringify(more))
    assert.equal((await service.call('GET', `/servers/${held}/deletion`)).body.lockedBackups, 1)
    await service.call('DELETE', `/backups/${held}/${backup.id}/lock`)
    await deleteAndWait(held)
    assert.equal((await service.call('DELETE', `/servers/${held}`, { body: { name: 'x', purge: true } })).status, 400)
    assert.equal((await remove(held, { purge: true })).status, 202)
    await purged(held)
    assert.ok(!existsSync(folder('held', held)))
  })

  test('undelete and purge at the same time: exactly one is taken, and it is done whole', async () => {
    for (const isUndeleteFirst of [true, false]) {
      const id = await world.server({ 'world.dat': 'years of work' })
      await deleteAndWait(id)
      const requests = [() => undelete(id), () => remove(id, { purge: true })]
      const replies = await inOrder(service, id, isUndeleteFirst ? requests : requests.toReversed())
      const [back, gone] = (isUndeleteFirst ? replies : replies.toReversed()).map(({ status }) => status)
      assert.deepEqual([back, gone].sort(), [202, 409])
      if (engine === 'postgres') assert.equal(back === 202, isUndeleteFirst)
      if (back === 202) {
        await reaches(id, 'ready')
        assert.equal(await readFile(join(world.folder(id), 'world.dat'), 'utf8'), 'years of work')
      } else await purged(id)
    }
  })

  test('delete and undelete at the same time: the undelete is refused or brings everything back', async () => {
    const id = await world.server({ 'world.dat': 'years of work' })
    const [gone, back] = await inOrder(service, id, [() => remove(id), () => undelete(id)])
    assert.equal(gone?.status, 202)
    assert.equal(back?.status, 409)
    await reaches(id, 'deleted')
    const again = await inOrder(service, id, [() => undelete(id), () => undelete(id)])
    assert.deepEqual(again.map(({ status }) => status).sort(), [202, 409])
    await reaches(id, 'ready')
    assert.equal(await readFile(join(world.folder(id), 'world.dat'), 'utf8'), 'years of work')
  })

  /** As a crash leaves a job: marked as running by a process that is no more. */
  async function crashAt(id: string, kind: string, status: string, disk: () => Promise<void>): Promise<void> {
    await withDatabase(service, async (db) => {
      const job = await db.selectFrom('jobs').selectAll().where('server_id', '=', id).orderBy('id', 'desc').execute()
      const last = job.find((row) => row.kind === kind)
      assert.ok(last)
      await db
        .updateTable('jobs')
        .set({ status: 'running', owner: 'req_dead', lease_until: 1, finished_at: null })
        .where('id', '=', last.id)
        .execute()
      const change = status === 'deleting' ? { deleted_at: null, purge_at: null } : {}
      await db
        .updateTable('servers')
        .set({ status: status as 'deleting', ...change })
        .where('id', '=', id)
        .execute()
    })
    await disk()
    await service.restart()
  }

  test('A job is a row before it runs, and its handler is idempotent.', async () => {
    const id = await world.server({ 'world.dat': 'years of work' })
    const read = () => readFile(join(world.folder(id), 'world.dat'), 'utf8')
    const aside = () => rename(folder('servers', id), folder('held', id))
    const back = () => rename(folder('held', id), folder('servers', id))
    await deleteAndWait(id)
    const { frees } = (await get(id)).deletion
    // Killed after the folders were put aside and before the row said so, then before they were.
    for (const disk of [async () => {}, back]) {
      await service.halt()
      await crashAt(id, 'server.delete', 'deleting', disk)
      await reaches(id, 'deleted')
      assert.deepEqual((await get(id)).deletion.frees, frees)
      assert.ok(existsSync(folder('held', id)) && !existsSync(folder('servers', id)))
    }
    await undelete(id)
    await reaches(id, 'ready')
    for (const disk of [async () => {}, aside]) {
      await service.halt()
      await crashAt(id, 'server.undelete', 'undeleting', disk)
      await reaches(id, 'ready')
      assert.equal(await read(), 'years of work')
    }
    await deleteAndWait(id)
    await remove(id, { purge: true })
    await service.halt()
    await mkdir(join(service.dataDir, 'removed', id), { recursive: true })
    await service.restart()
    await purged(id)
    for (const kind of ['servers', 'held', 'removed']) assert.ok(!existsSync(join(service.dataDir, kind, id)), kind)
    assert.equal((await service.call('GET', '/activity/verify')).body.intact, true)
  })

  test('with no days to keep it a server is gone at once', async () => {
    await service.restart({ GAMEKEEPER_DELETED_SERVER_DAYS: '0' })
    const { id } = await service.createServer()
    assert.equal((await remove(id)).status, 202)
    await purged(id)
    assert.deepEqual((await eventsOf(id)).slice(0, 2), ['server.purged', 'server.deleted'])
    await service.restart({ GAMEKEEPER_DELETED_SERVER_DAYS: '7' })
  })

  test('files of a deleted server whose row was lost come back when it is recovered from its backups', async () => {
    const id = await world.server({ 'world.dat': 'years of work' })
    await world.backup(id)
    await deleteAndWait(id)
    await withDatabase(service, async (db) => {
      await db.deleteFrom('servers').where('id', '=', id).execute()
      await db.deleteFrom('backups').where('server_id', '=', id).execute()
    })
    await service.restart()
    assert.ok(existsSync(folder('held', id)), 'never swept')
    assert.equal((await service.call('POST', '/backups/recover')).status, 200)
    assert.equal(await readFile(join(world.folder(id), 'world.dat'), 'utf8'), 'years of work')
    await rm(folder('held', id), { recursive: true, force: true })
  })
})

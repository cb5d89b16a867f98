// The life of a backup through the front door: create, read, lock, cancel, delete, list.
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, SLOWEST_RATE, type World } from '../../../test/support/backups.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { openEvents } from '../../../test/support/events.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'
import type { Backup } from '../../contract/backups/backups.ts'
import { HEARTBEAT_MS } from '../http/streams/state-stream.ts'

const NEVER_MS = 2 ** 31 - 1

onBothEngines('backups', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  test('a backup is made in the background and says what it holds', async () => {
    const server = await world.server({ 'world/level.dat': 'level', 'server.properties': 'motd=hi' })
    const made = await service.call('POST', `/backups/${server}`, {})
    assert.equal(made.status, 202)
    assert.equal(made.body.status, 'queued')
    assert.match(made.body.name, /^Backup at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/)
    assert.equal(made.headers.get('location'), `/v1/game/backups/${server}/${made.body.id}`)
    const backup = await world.ended(server, made.body.id)
    assert.equal(backup.status, 'completed')
    assert.equal(backup.fileCount, 2)
    assert.equal(backup.sizeBytes, 12)
    assert.equal(backup.consistency, 'offline')
    assert.equal(backup.error, null)
    assert.deepEqual(backup.warnings, [])
    assert.ok(backup.checksum && backup.startedAt && backup.completedAt)
    assert.equal(backup.verifiedAt, null)
    assert.deepEqual(backup.progress, { filesDone: 2, filesTotal: 2, bytesDone: 12, bytesTotal: 12 })
    assert.deepEqual(await world.events(server), ['backup.completed', 'backup.started'])
  })

  test('what is sent is kept, and the patterns that were used are reported', async () => {
    const server = await world.server({ 'a.txt': 'a', 'b.log': 'b', '.backupignore': '*.txt' })
    const chosen = await world.backup(server, { name: 'Chosen', ignored: '*.log', isLocked: true })
    assert.equal(chosen.name, 'Chosen')
    assert.equal(chosen.ignored, '*.log')
    assert.equal(chosen.isLocked, true)
    assert.deepEqual(await world.names(server, chosen.id), ['.backupignore', 'a.txt'])
    const own = await world.backup(server, { ignored: '' })
    assert.equal(own.ignored, '*.txt')
    assert.deepEqual(await world.names(server, own.id), ['.backupignore', 'b.log'])
  })

  test('a .backupignore that cannot be applied is a warning, and what comes next is backed up all the same', async () => {
    const large = '/.backupignore is larger than 32 KiB and was not applied.'
    const irregular = '/.backupignore is not a regular file and was not applied.'
    const server = await world.server({
      'a.txt': 'a',
      'b.log': 'b',
      '.backupignore': '*.log\n'.padEnd(32 * 1024 + 1, '#'),
    })
    const tooLarge = await world.backup(server, {})
    assert.deepEqual([tooLarge.ignored, tooLarge.warnings], ['', [large]])
    assert.deepEqual(await world.names(server, tooLarge.id), ['.backupignore', 'a.txt', 'b.log'])
    const chosen = await world.backup(server, { ignored: '*.txt' })
    assert.deepEqual([chosen.ignored, chosen.warnings], ['*.txt', []], 'the file does not count')

    const path = join(world.folder(server), '.backupignore')
    const putInPlace: (() => void)[] = [
      () => mkdirSync(path),
      () => symlinkSync('/etc/hostname', path),
      () => symlinkSync('gone', path),
    ]
    for (const [index, put] of putInPlace.entries()) {
      rmSync(path, { recursive: true })
      put()
      await world.write(server, { [`new-${index}`]: 'x' })
      const backup = await world.backup(server, {})
      assert.deepEqual([backup.ignored, backup.warnings], ['', [irregular]])
      assert.ok((await world.names(server, backup.id)).includes(`new-${index}`))
    }

    rmSync(path)
    await world.write(server, { 'patterns.txt': '*.log\n'.padEnd(32 * 1024, '#') })
    symlinkSync('patterns.txt', path)
    const applied = await world.backup(server, {})
    assert.deepEqual(applied.warnings, [])
    const names = ['.backupignore', 'a.txt', 'new-0', 'new-1', 'new-2', 'patterns.txt']
    assert.deepEqual(await world.names(server, applied.id), names)
  })

  test('what is wrong with a request is named, and nothing is made', async () => {
    const server = await world.server({})
    const bad = [
      { name: 'x'.repeat(192) },
      { name: 'a\u0007' },
      { ignored: 'ä'.repeat(17_000) },
      { ignored: 'x'.repeat(33_000) },
      { isLocked: 'yes' },
      { other: 1 },
    ]
    for (const body of bad) {
      const reply = await service.call('POST', `/backups/${server}`, { body })
      assert.equal(reply.status, 400, JSON.stringify(body))
      assert.equal(reply.body.errors[0].path, `/${Object.keys(body)[0]}`)
    }
    assert.deepEqual((await service.call('GET', `/backups/${server}`)).body.data, [])
    assert.equal((await service.call('POST', '/backups/srv_none', {})).body.code, 'not_found')
  })

  test('Nobody can delete a locked backup or its server until the backup is unlocked', async () => {
    const server = await world.server({ a: '1' })
    const { id } = await world.backup(server)
    for (let i = 0; i < 3; i++) {
      const locked = await service.call('POST', `/backups/${server}/${id}/lock`, {
        headers: { 'content-type': 'text/plain' },
      })
      assert.equal(locked.status, 200)
      assert.equal(locked.body.isLocked, true)
    }
    assert.equal((await service.call('DELETE', `/backups/${server}/${id}`)).body.code, 'backup_locked')
    const gone = await service.call('DELETE', `/servers/${server}`, { body: { name: 'Castle' } })
    assert.equal(gone.body.code, 'backup_locked')
    for (let i = 0; i < 2; i++)
      assert.equal((await service.call('DELETE', `/backups/${server}/${id}/lock`)).body.isLocked, false)
    assert.equal((await service.call('DELETE', `/backups/${server}/${id}`)).status, 204)
    assert.equal((await service.call('GET', `/backups/${server}/${id}`)).status, 404)
    const events = await world.events(server)
    assert.deepEqual(events.slice(0, 3), ['backup.deleted', 'backup.unlocked', 'backup.locked'])
  })

  test('A lock can be set while the backup is still queued or running.', async () => {
    const server = await world.server({ big: 'x'.repeat(3_000_000) })
    const ids = await world.start(server, 3)
    for (const id of ids) {
      assert.equal((await service.call('POST', `/backups/${server}/${id}/lock`)).body.isLocked, true)
      assert.equal((await service.call('DELETE', `/backups/${server}/${id}`)).body.code, 'backup_locked')
    }
    for (const id of ids) assert.equal((await world.ended(server, id)).isLocked, true)
    const jobs = (await service.call('GET', `/servers/${server}/jobs`)).body.data
    assert.equal(jobs.filter((job: { kind: string }) => job.kind === 'backup').length, 3)
  })

  test('At the limit a new backup is refused (backup_limit_reached); nothing is deleted to make room', async () => {
    const { id: server } = await service.createServer({ limits: { backups: 3 } })
    const replies = await Promise.all(Array.from({ length: 50 }, () => service.call('POST', `/backups/${server}`, {})))
    assert.equal(replies.filter((reply) => reply.status === 202).length, 3)
    assert.equal(replies.filter((reply) => reply.body.code === 'backup_limit_reached').length, 47)
    const { data } = (await service.call('GET', `/backups/${server}`)).body
    assert.equal(data.length, 3)
    for (const { id } of data) assert.equal((await world.ended(server, id)).status, 'completed')
    assert.equal((await service.call('DELETE', `/backups/${server}/${data[0].id}`)).status, 204)
    assert.equal((await service.call('POST', `/backups/${server}`, {})).status, 202)
  })

  test('the same key makes one backup', async () => {
    const server = await world.server({ a: '1' })
    const headers = { 'idempotency-key': 'once' }
    const [first, second] = [
      await service.call('POST', `/backups/${server}`, { body: { name: 'One' }, headers }),
      await service.call('POST', `/backups/${server}`, { body: { name: 'One' }, headers }),
    ]
    assert.equal(first.body.id, second.body.id)
    assert.equal(second.headers.get('location'), first.headers.get('location'))
    const other = await service.call('POST', `/backups/${server}`, { body: { name: 'Two' }, headers })
    assert.equal(other.body.code, 'idempotency_conflict')
  })

  test('deleting one that is queued or running cancels it', async () => {
    const server = await world.server({ big: 'y'.repeat(20_000_000) })
    await world.slowly(async () => {
      const ids = await world.start(server, 3)
      for (const id of ids) assert.equal((await service.call('DELETE', `/backups/${server}/${id}`)).status, 204)
    })
    assert.deepEqual((await service.call('GET', `/backups/${server}`)).body.data, [])
    const next = await world.backup(server)
    assert.equal(next.status, 'completed')
    assert.equal((await service.call('GET', `/backups/${server}`)).body.data.length, 1)
    const cancelled = (await world.events(server)).filter((event) => event === 'backup.cancelled')
    assert.equal(cancelled.length, 3)
  })

  test('a list is newest first, in pages, by status', async () => {
    const server = await world.server({ a: '1' })
    const ids: string[] = []
    for (let i = 0; i < 3; i++) ids.unshift((await world.backup(server, { name: `B${i}` })).id)
    const first = (await service.call('GET', `/backups/${server}?limit=2`)).body
    const second = (await service.call('GET', `/backups/${server}?limit=2&cursor=${first.nextCursor}`)).body
    assert.deepEqual(
      [...first.data, ...second.data].map((backup) => backup.id),
      ids,
    )
    assert.equal(second.nextCursor, null)
    assert.equal((await service.call('GET', `/backups/${server}?status=failed`)).body.data.length, 0)
    assert.equal((await service.call('GET', `/backups/${server}?cursor=x`)).status, 400)
  })

  test('its progress is followed live, and the stream ends with it', async () => {
    const server = await world.server({ big: 'z'.repeat(5_000_000) })
    const [id] = await world.start(server, 1)
    const stream = await openEvents(`${service.url}/v1/game/backups/${server}/${id}`, service.adminToken)
    assert.equal(stream.headers.get('content-type'), 'text/event-stream')
    const states = []
    for (let event = await stream.next(); event; event = await stream.next()) states.push(event.data)
    assert.equal(states.at(-1).status, 'completed')
    assert.equal(states.at(-1).progress.bytesDone, 5_000_000)
    const none = await fetch(`${service.url}/v1/game/backups/${server}/bkp_none`, {
      headers: { accept: 'text/event-stream', authorization: `Bearer ${service.adminToken}` },
    })
    assert.equal(none.status, 404)
  })

  test('whoever follows hears of every change as it is made, not when somebody looks again', async (t) => {
    const realTimeout = setTimeout
    // Nobody looks again.
    t.mock.method(globalThis, 'setTimeout', (work: () => void, ms: number, ...args: []) =>
      realTimeout(work, ms === HEARTBEAT_MS ? NEVER_MS : ms, ...args),
    )
    await using service = await startTestService({ engine, env: { GAMEKEEPER_BACKUP_RATE: SLOWEST_RATE } })
    const world = createWorld(service)
    const follow = (server: string, id: string) =>
      openEvents(`${service.url}/v1/game/backups/${server}/${id}`, service.adminToken)
    // The first of these runs for as long as the test does.
    const endless = await world.server({ big: 'z'.repeat(30_000_000) })
    const [, second = ''] = await world.start(endless, 2)
    const queued = await follow(endless, second)
    assert.equal((await queued.next())?.data.status, 'queued')
    await service.call('POST', `/backups/${endless}/${second}/lock`)
    assert.equal((await queued.next())?.data.isLocked, true)
    await service.call('DELETE', `/backups/${endless}/${second}/lock`)
    assert.equal((await queued.next())?.data.isLocked, false)
    await service.call('DELETE', `/backups/${endless}/${second}`)
    assert.equal(await queued.next(), undefined)
    const brief = await world.server({ small: 'z'.repeat(3 * Number(SLOWEST_RATE)) })
    const [only = ''] = await world.start(brief, 1)
    const running = await follow(brief, only)
    let last: Backup | undefined
    for (let event = await running.next(); event; event = await running.next()) last = event.data
    assert.equal(last?.status, 'completed')
  })

  test('scopes are asked for, and another server stays hidden', async () => {
    const server = await world.server({ a: '1' })
    const { id } = await world.backup(server)
    const reader = (await service.mint(['backups:read'])).token
    assert.equal((await service.call('GET', `/backups/${server}/${id}`, { token: reader })).status, 200)
    assert.equal((await service.call('POST', `/backups/${server}`, { token: reader })).status, 403)
    assert.equal((await service.call('POST', `/backups/${server}/${id}/lock`, { token: reader })).status, 403)
    const { id: other } = await service.createServer()
    assert.equal((await service.call('GET', `/backups/${other}/${id}`)).status, 404)
    const stranger = (await service.mint(['*'], [other])).token
    assert.equal((await service.call('GET', `/backups/${server}/${id}`, { token: stranger })).status, 404)
  })

  test('a server that is purged takes its backups with it', async () => {
    const server = await world.server({ a: '1' })
    await world.backup(server)
    await world.start(server, 2)
    const body = { name: 'Castle', purge: true }
    assert.equal((await service.call('DELETE', `/servers/${server}`, { body })).status, 202)
    await until(async () => (await service.call('GET', `/servers/${server}`)).status === 404)
    assert.equal((await service.call('GET', `/backups/${server}`)).status, 404)
    const recovered = await service.call('POST', '/backups/recover')
    assert.ok(!recovered.body.servers.includes(server))
  })
})

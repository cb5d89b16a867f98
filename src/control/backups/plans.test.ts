// Retention, schedules, and what happens when the service, the database or the store go down in between.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../test/support/backups.ts'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'
import type { Backup } from '../../contract/backups/backups.ts'
import { nameFor, nextRun } from './schedules/cron.ts'

onBothEngines('backup plans', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  const listed = async (server: string): Promise<Backup[]> =>
    (await service.call('GET', `/backups/${server}`)).body.data
  const ids = (backups: readonly Backup[]) => backups.map(({ id }) => id)

  test('Locked backups are always kept.', async () => {
    const server = await world.server({ a: '1' })
    const none = { keepLast: null, keepHourly: null, keepDaily: null, keepWeekly: null, keepMonthly: null }
    assert.deepEqual((await service.call('GET', `/backups/${server}/retention`)).body, none)
    const locked = await world.backup(server, { isLocked: true })
    const old = await world.backup(server)
    const last = await world.backup(server)
    const set = await service.call('PUT', `/backups/${server}/retention`, { body: { keepLast: 1 } })
    assert.deepEqual(set.body, { ...none, keepLast: 1 })
    const dry = await service.call('POST', `/backups/${server}/retention/apply`, { body: { dryRun: true } })
    assert.deepEqual(ids(dry.body.expired), [old.id])
    assert.equal(dry.body.keptCount, 2)
    assert.deepEqual(ids(await listed(server)), [last.id, old.id, locked.id])
    const newest = await world.backup(server)
    assert.deepEqual(ids(await listed(server)), [newest.id, locked.id])
    const expired = (await world.events(server)).filter((event) => event === 'backup.expired')
    assert.equal(expired.length, 2)
    const now = await service.call('POST', `/backups/${server}/retention/apply`, { body: { dryRun: false } })
    assert.deepEqual(now.body, { dryRun: false, expired: [], keptCount: 2 })
    assert.equal((await service.call('PUT', `/backups/${server}/retention`, { body: { keepLast: 0 } })).status, 400)
  })

  test('a schedule is made, changed, read, listed and deleted; what is wrong with it is named', async () => {
    const server = await world.server({ a: '1' })
    const where = `/backups/${server}/schedules`
    const body = { name: 'Nightly', cron: '0 4 * * *', timeZone: 'Europe/Berlin', namePattern: '{server} {date}' }
    const made = await service.call('POST', where, { body })
    assert.equal(made.status, 201)
    assert.equal(made.headers.get('location'), `/v1/game${where}/${made.body.id}`)
    const hour = new Date(made.body.nextRunAt).toLocaleString('en', { timeZone: 'Europe/Berlin', hour: 'numeric' })
    assert.equal(hour, '4 AM')
    assert.equal((await service.call('POST', where, { body })).body.code, 'already_exists')
    const off = await service.call('PATCH', `${where}/${made.body.id}`, { body: { isEnabled: false } })
    assert.equal(off.body.nextRunAt, null)
    assert.deepEqual((await service.call('GET', `${where}/${made.body.id}`)).body, off.body)
    assert.deepEqual((await service.call('GET', where)).body.data, [off.body])
    for (const [field, value] of [
      ['cron', '61 * * * *'],
      ['cron', '* * * * * *'],
      ['cron', '0 0 30 2 *'],
      ['timeZone', 'Mars/Olympus'],
      ['namePattern', 'x {nonsense}'],
    ] as const) {
      const bad = await service.call('POST', where, { body: { ...body, name: 'Bad', [field]: value } })
      assert.equal(bad.status, 400, value)
      assert.deepEqual(
        bad.body.errors.map(({ path }: { path: string }) => path),
        [`/${field}`],
      )
    }
    assert.equal((await service.call('DELETE', `${where}/${made.body.id}`)).status, 204)
    assert.equal((await service.call('GET', `${where}/${made.body.id}`)).status, 404)
    assert.deepEqual(await world.events(server), ['schedule.deleted', 'schedule.changed', 'schedule.created'])
  })

  /** As if the service had been down when it was due. */
  const missRuns = (scheduleId: string) =>
    withDatabase(service, (db) =>
      db.updateTable('schedules').set({ next_run_at: 1000 }).where('id', '=', scheduleId).execute(),
    )

  test('Runs missed while the service was down are made up for by a single run.', async () => {
    const server = await world.server({ a: '1' }, { limits: { backups: 2 } })
    const where = `/backups/${server}/schedules`
    const body = { name: 'Hourly', cron: '0 * * * *', namePattern: 'At {time}', isLocked: true, onlyIfChanged: true }
    const { id } = (await service.call('POST', where, { body })).body
    const outcome = async () => (await service.call('GET', `${where}/${id}`)).body
    await missRuns(id)
    const ran = await until(async () => {
      const schedule = await outcome()
      return schedule.lastOutcome === 'started' && schedule
    })
    assert.ok(Date.parse(ran.nextRunAt) > Date.now())
    const first = await world.ended(server, ran.lastBackupId)
    assert.match(first.name, /^At \d\d:\d\d:\d\d$/)
    assert.equal(first.isLocked, true)
    assert.equal((await listed(server)).length, 1)

    await missRuns(id)
    await until(async () => (await outcome()).lastOutcome === 'unchanged')
    assert.equal((await listed(server)).length, 1)

    await world.write(server, { a: '2' })
    await missRuns(id)
    await until(async () => (await listed(server)).length === 2)
    const [second] = await listed(server)
    await world.ended(server, second?.id ?? '')

    // Nothing has changed, but the last one cannot be read: that is no reason to make none.
    await writeFile(join(service.dataDir, 'backups/manifests', server, second?.id ?? ''), 'rubbish')
    await missRuns(id)
    await until(async () => (await outcome()).lastOutcome === 'backup_limit_reached')
    assert.equal((await listed(server)).length, 2)
    const { data } = (await service.call('GET', `/servers/${server}/activity?event=schedule.*`)).body
    assert.equal(data[0].event, 'schedule.failed')
    assert.equal(data[0].source, 'schedule')
  })

  test('After a crash or a restart a backup that was under way starts again and reuses what it had already stored.', async () => {
    const server = await world.server({ big: Buffer.alloc(60_000_000, 'big ') })
    const started = await world.slowly(async () => {
      const ids = await world.start(server, 3)
      await until(async () => (await listed(server)).some(({ status }) => status === 'running'))
      return ids
    })
    for (const id of started) assert.equal((await world.ended(server, id)).status, 'completed')
    assert.equal((await world.restore(server, started[0] ?? '')).status, 'completed')
  })

  test('It never stays running: if it cannot continue it is failed, and error says why.', async () => {
    const server = await world.server({ a: '1' })
    const { id } = await world.backup(server)
    await service.halt()
    await withDatabase(service, (db) =>
      db
        .updateTable('backups')
        .set({ status: 'running', job_id: 'job_gone', completed_at: null })
        .where('id', '=', id)
        .execute(),
    )
    await rmManifest(service, server, id)
    await service.restart()
    const shown = (await service.call('GET', `/backups/${server}/${id}`)).body
    assert.equal(shown.status, 'failed')
    assert.match(shown.error.detail, /interrupted/)
    assert.equal(
      (await service.call('POST', `/backups/${server}/${id}/restore`, { body: { mode: 'replace' } })).body.code,
      'backup_not_ready',
    )
  })

  test('a backup in the store but not in the list is added (backup.adopted), and one in the list but not in the store is marked failed (backup.lost)', async () => {
    const server = await world.server({ 'world/level.dat': 'old' })
    const forgotten = await world.backup(server, { name: 'Forgotten', isLocked: true })
    const lost = await world.backup(server, { name: 'Lost' })
    await service.halt()
    await withDatabase(service, (db) => db.deleteFrom('backups').where('id', '=', forgotten.id).execute())
    await rmManifest(service, server, lost.id)
    await service.restart()
    const back = (await service.call('GET', `/backups/${server}/${forgotten.id}`)).body
    assert.deepEqual({ ...back, startedAt: null }, { ...forgotten, startedAt: null })
    const gone = (await service.call('GET', `/backups/${server}/${lost.id}`)).body
    assert.equal(gone.status, 'failed')
    assert.equal(gone.error.code, 'backup_damaged')
    const events = await world.events(server)
    assert.ok(events.includes('backup.adopted') && events.includes('backup.lost'))
    assert.equal((await world.restore(server, forgotten.id)).status, 'completed')
  })

  test('a manifest that cannot be read, without a row, is shown as failed and can be deleted', async () => {
    const server = await world.server({ a: '1' })
    const { id, createdAt } = await world.backup(server)
    await service.halt()
    await withDatabase(service, (db) => db.deleteFrom('backups').where('id', '=', id).execute())
    await writeFile(manifestOf(service, server, id), 'rubbish')
    await service.restart()
    const shown = (await service.call('GET', `/backups/${server}/${id}`)).body
    assert.deepEqual([shown.status, shown.error.code, shown.createdAt], ['failed', 'backup_damaged', createdAt])
    assert.equal((await service.call('DELETE', `/backups/${server}/${id}`)).status, 204)
    await until(async () => !existsSync(manifestOf(service, server, id)))
  })

  test('a backup whose blocks are missing is marked as damaged by a recovery, also one that was taken for lost', async () => {
    const server = await world.server({ a: 'in no other backup' })
    const kept = await world.backup(server)
    const lost = await world.backup(server)
    await service.halt()
    const manifest = await readFile(manifestOf(service, server, lost.id))
    await rmManifest(service, server, lost.id)
    await service.restart()
    await service.halt()
    await writeFile(manifestOf(service, server, lost.id), manifest)
    await rm(join(service.dataDir, 'backups/packs'), { recursive: true })
    await service.restart()
    for (const _ of ['once', 'and again']) {
      const { damaged } = (await service.call('POST', '/backups/recover')).body
      assert.ok(damaged.includes(kept.id) && damaged.includes(lost.id))
      for (const { id } of [kept, lost]) {
        const shown = (await service.call('GET', `/backups/${server}/${id}`)).body
        assert.deepEqual([shown.status, shown.error?.code], ['completed', 'backup_damaged'])
      }
    }
  })

  test('If either says that a backup is locked, it is locked', async () => {
    const server = await world.server({ a: '1' })
    const made: string[] = []
    for (const isLocked of [false, true, true]) made.push((await world.backup(server, { isLocked })).id)
    const [onlyInList = '', onlyInStore = '', unlocked = ''] = made
    await service.call('DELETE', `/backups/${server}/${unlocked}/lock`)
    await service.halt()
    await withDatabase(service, async (db) => {
      await db.updateTable('backups').set({ locked: 1 }).where('id', '=', onlyInList).execute()
      await db.updateTable('backups').set({ locked: 0 }).where('id', '=', onlyInStore).execute()
    })
    await service.restart()
    const isLocked = async (id: string) => (await service.call('GET', `/backups/${server}/${id}`)).body.isLocked
    assert.deepEqual(await Promise.all(made.map(isLocked)), [true, true, false])
    const mark = (id: string) => readFile(join(service.dataDir, 'backups/locks', server, id), 'utf8')
    assert.deepEqual(JSON.parse(await mark(onlyInList)), { isLocked: true })
    assert.deepEqual(JSON.parse(await mark(unlocked)), { isLocked: false })
    assert.equal((await service.call('DELETE', `/backups/${server}/${unlocked}`)).status, 204)
    await until(async () => !(await readdir(join(service.dataDir, 'backups/locks', server))).includes(unlocked))
  })

  test('The store is enough: the backups folder of the data directory, or a copy of it, on whichever disk it survived.', async () => {
    const server = await world.server({ 'world/level.dat': 'years of work' })
    const { id } = await world.backup(server, { name: 'Precious', isLocked: true })
    await service.halt()
    await withDatabase(service, async (db) => {
      for (const table of ['backups', 'servers', 'jobs'] as const) await db.deleteFrom(table).execute()
    })
    await rm(join(service.dataDir, 'servers', server), { recursive: true })
    await service.restart()
    assert.equal((await service.call('GET', `/backups/${server}`)).status, 404)
    const narrow = await service.mint(['backups:write'])
    assert.equal((await service.call('POST', '/backups/recover', { token: narrow.token })).status, 403)
    const recovered = await service.call('POST', '/backups/recover')
    assert.equal(recovered.status, 200)
    assert.ok(recovered.body.servers.includes(server) && recovered.body.adopted.includes(id))
    const again = (await service.call('POST', '/backups/recover')).body
    assert.deepEqual([again.servers, again.adopted], [[], []])
    assert.equal((await service.call('GET', `/backups/${server}/${id}`)).body.isLocked, true)
    assert.equal((await world.restore(server, id, { safetyBackup: false })).status, 'completed')
    assert.deepEqual(await readdir(join(world.folder(server), 'world')), ['level.dat'])
  })
})

function manifestOf(service: TestService, serverId: string, backupId: string): string {
  return join(service.dataDir, 'backups', 'manifests', serverId, backupId)
}

function rmManifest(service: TestService, serverId: string, backupId: string): Promise<void> {
  return rm(manifestOf(service, serverId, backupId))
}

test('a clock that is put forward or back does not run a schedule twice or skip it', () => {
  // Berlin puts its clocks forward at 02:00 on 2026-03-29, and back at 03:00 on 2026-10-25.
  const berlin = (after: string) => nextRun('30 2 * * *', 'Europe/Berlin', Date.parse(after))
  const before = berlin('2026-03-28T12:00:00Z') ?? 0
  assert.equal(new Date(before).toISOString().slice(0, 10), '2026-03-29')
  const autumn = berlin('2026-10-24T12:00:00Z') ?? 0
  assert.equal(new Date(berlin(new Date(autumn).toISOString()) ?? 0).toISOString(), '2026-10-26T01:30:00.000Z')
})

test('a name is filled in, in the time zone of the schedule, and cut to what a name may be', () => {
  const at = Date.parse('2026-11-15T23:30:00Z')
  assert.equal(
    nameFor('{server}: {date} {time} ({zone})', at, 'Europe/Berlin', 'Castle'),
    'Castle: 2026-11-16 00:30:00 (Europe/Berlin)',
  )
  assert.equal(nameFor('{server}', at, 'UTC', 'x'.repeat(300)).length, 191)
})

// Backups and their mirror through the front door: what each backup says of itself, and what the whole does.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { createWorld, type World } from '../../../../test/support/backups.ts'
import { withDatabase } from '../../../../test/support/database.ts'
import { onBothEngines } from '../../../../test/support/engines.ts'
import {
  blobsIn,
  createMirrorPlace,
  flip,
  type Mirrored,
  type MirrorPlace,
  namesIn,
  startMirrored,
} from '../../../../test/support/mirror.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'
import type { Backup } from '../../../contract/backups/backups.ts'
import type { Offsite } from '../../../contract/backups/offsite.ts'

const DAY_MS = 24 * 3600_000
const FIRE = new Error('the bucket is on fire')

onBothEngines('off-site', (engine) => {
  let place: MirrorPlace
  let service: TestService
  let world: World
  let stop: Mirrored['stop']
  before(async () => {
    ;({ place, service, world, stop } = await startMirrored(engine))
  })
  after(() => stop())
  afterEach(() => {
    delete place.faults.before
  })

  const read = async (): Promise<Offsite> => (await service.call('GET', '/offsite')).body
  const readBackup = async (server: string, id: string): Promise<Backup> =>
    (await service.call('GET', `/backups/${server}/${id}`)).body
  const untilState = (server: string, id: string, state: string) =>
    until(async () => {
      const backup = await readBackup(server, id)
      return backup.offsite?.state === state && backup
    })
  /** No waiting for the next attempt. */
  const hasten = () => service.call('POST', '/offsite/prune', { body: { bytes: 0 } })
  const untilIdle = () =>
    until(async () => {
      const offsite = await read()
      return offsite.activity === 'idle' && offsite
    })
  const newServer = () => world.server({ a: randomBytes(100_000) })

  test('a backup is pending, then stored, and the activity of its server says so', async () => {
    const gate = Promise.withResolvers<void>()
    place.faults.before = (call, name) => (call === 'commit' && name.startsWith('packs/') ? gate.promise : undefined)
    const server = await newServer()
    const { id, offsite } = await world.backup(server)
    assert.deepEqual(offsite, { state: 'pending', storedAt: null, error: null })
    const sending = await until(async () => {
      const now = await read()
      return now.activity === 'sending' && now.progress?.bytesTotal ? now : null
    })
    assert.equal(sending.pendingBackups, 1)
    const early = await service.call('POST', `/backups/${server}/${id}/verify?offsite=true`)
    assert.deepEqual([early.status, early.body.code], [409, 'backup_not_ready'])
    assert.match(early.body.detail, /not in the off-site store yet/)
    assert.ok(sending.pendingBytes > 100_000)
    gate.resolve()
    const stored = await untilState(server, id, 'stored')
    assert.ok(stored.offsite?.storedAt)
    assert.equal(stored.offsite?.error, null)
    assert.ok(namesIn(place.dir, 'manifests').includes(id))
    const idle = await untilIdle()
    assert.equal(idle.place, place.target.place)
    assert.equal(idle.pendingBackups, 0)
    assert.equal(idle.oldestPendingAt, null)
    assert.equal(idle.problem, null)
    assert.equal(idle.isReachable, true)
    assert.equal(idle.lastRun?.error, null)
    assert.ok((idle.mirror?.bytes ?? 0) > 100_000)
    assert.equal((await world.events(server))[0], 'backup.offsite_stored')
    const { data } = (await service.call('GET', `/backups/${server}`)).body
    assert.equal(data[0].offsite.state, 'stored')
  })

  test('a failure is told once for a server, with its reason, and is over when the backups are there', async () => {
    place.faults.before = () => {
      throw FIRE
    }
    const server = await newServer()
    const first = await world.backup(server)
    const failed = await untilState(server, first.id, 'failed')
    assert.deepEqual(failed.offsite?.error, { code: 'offsite_unreachable', detail: FIRE.message })
    assert.equal(failed.status, 'completed')
    const waiting = await until(async () => {
      const now = await read()
      return now.activity === 'waiting' && now
    })
    assert.ok(waiting.nextRunAt)
    assert.equal(waiting.isReachable, false)
    assert.equal(waiting.problem, FIRE.message)
    const second = await world.backup(server)
    await hasten()
    await untilState(server, second.id, 'failed')
    delete place.faults.before
    await hasten()
    for (const { id } of [first, second]) assert.equal((await untilState(server, id, 'stored')).offsite?.error, null)
    const events = await world.events(server)
    assert.equal(events.filter((event) => event === 'backup.offsite_failed').length, 1)
    assert.equal(events.filter((event) => event === 'backup.offsite_stored').length, 2)
  })

  test('GET /readyz warns when the oldest unsent backup is older than a day, and stays ready.', async () => {
    const ready = async () => (await fetch(`${service.url}/readyz`)).json()
    assert.deepEqual(Object.keys((await ready()) as object), ['status', 'checks'])
    place.faults.before = () => {
      throw FIRE
    }
    const server = await newServer()
    const { id } = await world.backup(server)
    await untilState(server, id, 'failed')
    assert.equal(((await ready()) as { warnings?: object }).warnings, undefined)
    await withDatabase(service, (db) =>
      db
        .updateTable('backups')
        .set({ completed_at: Date.now() - 2 * DAY_MS })
        .where('id', '=', id)
        .execute(),
    )
    const answer = (await ready()) as { status: string; warnings: Record<string, string> }
    assert.equal(answer.status, 'ready')
    assert.match(answer.warnings.offsite ?? '', /more than a day/)
    const metrics = await (await fetch(`${service.url}/metrics`)).text()
    assert.match(metrics, /^gamekeeper_offsite_unsent_backups 1$/m)
    assert.match(metrics, /^gamekeeper_offsite_oldest_unsent_seconds 1[67]\d{4}/m)
    delete place.faults.before
    await hasten()
    await untilState(server, id, 'stored')
    assert.equal(((await ready()) as { warnings?: object }).warnings, undefined)
    assert.match(await (await fetch(`${service.url}/metrics`)).text(), /^gamekeeper_offsite_unsent_backups 0$/m)
  })

  test('a backup that is deleted while it is sent is not told of, and leaves the mirror', async () => {
    const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const server = await newServer()
    await untilState(server, (await world.backup(server)).id, 'stored')
    await untilIdle()
    place.faults.before = (call, name) => {
      if (call !== 'stat' || !name.startsWith('manifests/')) return undefined
      reached.resolve()
      return gate.promise
    }
    const { id } = await world.backup(server)
    await reached.promise
    assert.equal((await service.call('DELETE', `/backups/${server}/${id}`)).status, 204)
    gate.resolve()
    await until(async () => !namesIn(place.dir, 'manifests').includes(id))
    assert.equal((await untilIdle()).problem, null)
    assert.equal((await world.events(server)).filter((event) => event === 'backup.offsite_stored').length, 1)
  })

  test('a lock is in the mirror too', async () => {
    const server = await newServer()
    const { id } = await world.backup(server)
    await untilState(server, id, 'stored')
    await service.call('POST', `/backups/${server}/${id}/lock`)
    await until(async () => namesIn(place.dir, `locks/${server}`).includes(id))
    await service.call('DELETE', `/backups/${server}/${id}/lock`)
  })

  test('a restart goes on where it was', async () => {
    const reached = Promise.withResolvers<void>()
    place.faults.before = (call, name) => {
      if (call !== 'commit' || !name.startsWith('index/')) return undefined
      reached.resolve()
      return new Promise<void>(() => {})
    }
    const server = await newServer()
    const { id } = await world.backup(server)
    await reached.promise
    await service.halt()
    delete place.faults.before
    await service.restart()
    assert.equal((await untilState(server, id, 'stored')).offsite?.state, 'stored')
  })

  test('without a mirror a backup says nothing of one, and with another place everything is still to be sent', async () => {
    const server = await newServer()
    const { id } = await world.backup(server)
    await untilState(server, id, 'stored')
    await service.restart({}, null)
    assert.equal((await readBackup(server, id)).offsite, null)
    assert.equal((await read()).activity, 'off')
    assert.equal((await service.call('POST', '/offsite/claim')).body.code, 'offsite_not_configured')
    const without = await world.backup(server)
    assert.equal(without.offsite, null)
    const other = createMirrorPlace()
    other.faults.before = () => {
      throw FIRE
    }
    await service.restart({}, other.target)
    for (const backupId of [id, without.id]) assert.equal((await readBackup(server, backupId)).offsite?.storedAt, null)
    await untilState(server, id, 'failed')
    delete other.faults.before
    await hasten()
    for (const backupId of [id, without.id]) await untilState(server, backupId, 'stored')
    await service.restart({}, place.target)
    await untilState(server, without.id, 'stored')
    assert.ok(namesIn(place.dir, 'manifests').includes(without.id))
    other.remove()
  })

  test('what the mirror has lost is pending again, and is sent again', async () => {
    const server = await newServer()
    const { id } = await world.backup(server)
    await untilState(server, id, 'stored')
    await service.halt()
    rmSync(join(place.dir, 'manifests', server), { recursive: true })
    await service.restart()
    await until(async () => namesIn(place.dir, 'manifests').includes(id))
    await untilState(server, id, 'stored')
  })

  test('what is known to be damaged there is replaced, and told, also where it cannot be', async () => {
    const server = await newServer()
    const { id } = await world.backup(server)
    await untilState(server, id, 'stored')
    await untilIdle()
    const path = blobsIn(place.dir, 'manifests').find((each) => each.endsWith(id)) ?? ''
    const whole = readFileSync(path)
    flip(path, 100)
    // As a verification leaves it.
    const damaged = join(service.dataDir, 'backups/state/copies')
    mkdirSync(dirname(damaged), { recursive: true })
    writeFileSync(damaged, JSON.stringify({ blobs: [`manifests/${server}/${id}`] }))
    place.faults.before = (call) => {
      if (call === 'commit') throw new Error('locked until next year')
    }
    await hasten()
    const problem = await until(async () => (await read()).problem)
    assert.match(problem, new RegExp(`could not be replaced: 1. manifests/${server}/${id}: locked until next year`))
    delete place.faults.before
    await hasten()
    await until(async () => readFileSync(path).equals(whole))
    await until(async () => (await read()).problem === null)
    const { data } = (await service.call('GET', '/activity?event=offsite.repaired')).body
    assert.deepEqual(
      data.map((entry: { properties: object }) => entry.properties),
      [{ count: 1, blobs: [`manifests/${server}/${id}`] }],
    )
  })

  test('who may not do everything may not look at it or touch it', async () => {
    const { token } = await service.mint(['backups:read', 'backups:write', 'servers:admin'])
    const server = await newServer()
    const few = await service.mint(['*'], [server])
    for (const [method, path, body] of [
      ['GET', '/offsite', undefined],
      ['POST', '/offsite/claim', undefined],
      ['POST', '/offsite/prune', { bytes: 1 }],
    ] as const) {
      for (const asked of [token, few.token]) {
        const reply = await service.call(method, path, { token: asked, ...(body ? { body } : {}) })
        assert.equal(reply.body.code, 'forbidden', `${method} ${path}`)
      }
    }
  })
})

onBothEngines('most of a mirror', (engine) => {
  let place: MirrorPlace
  let service: TestService
  let world: World
  let stop: Mirrored['stop']
  beforeEach(async () => {
    ;({ place, service, world, stop } = await startMirrored(engine))
  })
  afterEach(() => stop())

  const read = async (): Promise<Offsite> => (await service.call('GET', '/offsite')).body

  test('is removed only when somebody has confirmed it', async () => {
    const server = await world.server({ a: randomBytes(100_000) })
    const { id } = await world.backup(server)
    await until(async () => namesIn(place.dir, 'manifests').length === 1)
    assert.equal((await service.call('DELETE', `/backups/${server}/${id}`)).status, 204)
    const held = await until(async () => {
      const now = await read()
      return now.surplus?.reason === 'shrinks' && now
    })
    assert.match(held.problem ?? '', /prune --confirm/)
    assert.equal(held.surplus?.backups, 1)
    assert.deepEqual(namesIn(place.dir, 'manifests'), [id])
    const activity = async () =>
      (await service.call('GET', '/activity?event=offsite.*')).body.data.map((entry: { event: string }) => entry.event)
    assert.deepEqual(await activity(), ['offsite.removal_held'])
    // What was confirmed is less than what would go.
    await service.call('POST', '/offsite/prune', { body: { bytes: (held.surplus?.bytes ?? 0) - 1 } })
    const confirmed = await service.call('POST', '/offsite/prune', { body: { bytes: held.surplus?.bytes } })
    assert.equal(confirmed.status, 202)
    await until(async () => (await read()).surplus === null && (await read()).activity === 'idle')
    assert.deepEqual(namesIn(place.dir, 'manifests'), [])
    assert.deepEqual(await activity(), ['offsite.prune_confirmed', 'offsite.prune_confirmed', 'offsite.removal_held'])
  })

  test('of another service is out of reach', async () => {
    const server = await world.server({ a: 'a' })
    const { id } = await world.backup(server)
    await until(async () => namesIn(place.dir, 'manifests').length === 1)
    await using second = await startTestService({ engine, mirror: place.target })
    const other = createWorld(second)
    const elsewhere = await other.server({ a: 'b' })
    const backup = await other.backup(elsewhere)
    await second.call('POST', '/offsite/prune', { body: { bytes: 0 } })
    const refused = await until(async () => {
      const { body } = await second.call('GET', `/backups/${elsewhere}/${backup.id}`)
      return body.offsite.state === 'failed' && body
    })
    assert.equal(refused.offsite.error.code, 'offsite_taken')
    assert.match(refused.offsite.error.detail, /gamekeeper offsite claim/)
    assert.deepEqual(namesIn(place.dir, 'manifests'), [id])
  })

  test('is claimed by a data directory that was replaced', async () => {
    const server = await world.server({ a: 'a' })
    const { id } = await world.backup(server)
    await until(async () => namesIn(place.dir, 'manifests').includes(id))
    await service.halt()
    rmSync(join(service.dataDir, 'mirror.json'))
    await service.restart()
    const refused = await until(async () => {
      const now = await read()
      return now.lastRun?.error && now
    })
    assert.equal(refused.lastRun?.error?.code, 'offsite_taken')
    assert.equal(refused.isReachable, true)
    const claimed = await service.call('POST', '/offsite/claim')
    assert.equal(claimed.status, 200)
    await until(async () => (await read()).lastRun?.error === null)
    const { body } = await service.call('GET', '/activity?event=offsite.claimed')
    assert.equal(body.data[0].properties.place, place.target.place)
  })
})

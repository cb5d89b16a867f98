// What the database does not know was not deleted, and what has lost its packs is not stored.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import type { World } from '../../../../test/support/backups.ts'
import { withDatabase } from '../../../../test/support/database.ts'
import { onBothEngines } from '../../../../test/support/engines.ts'
import { type Mirrored, type MirrorPlace, namesIn, startMirrored } from '../../../../test/support/mirror.ts'
import type { TestService } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'
import { deletedAmong } from './offsite-store.ts'

onBothEngines('a mirror', (engine) => {
  let place: MirrorPlace
  let service: TestService
  let world: World
  let stop: Mirrored['stop']
  beforeEach(async () => {
    ;({ place, service, world, stop } = await startMirrored(engine))
  })
  afterEach(() => stop())

  const manifests = () => namesIn(place.dir, 'manifests')
  const storedBackup = async (server: string): Promise<string> => {
    await world.write(server, { a: randomBytes(100_000) })
    const { id } = await world.backup(server)
    await until(async () => (await service.call('GET', `/backups/${server}/${id}`)).body.offsite.state === 'stored')
    return id
  }

  test('keeps the backups that a service which was set back to an older state does not know', async () => {
    const server = await world.server({})
    const ids = [await storedBackup(server), await storedBackup(server), await storedBackup(server)]
    const [, , newest = ''] = ids
    await service.halt()
    await withDatabase(service, (db) => db.deleteFrom('backups').where('id', '=', newest).execute())
    rmSync(join(service.dataDir, 'backups/manifests', server, newest))
    await service.restart()
    const held = await until(async () => {
      const { body } = await service.call('GET', '/offsite')
      return body.surplus?.reason === 'store_incomplete' && body
    })
    assert.match(held.problem, /that nobody has deleted/)
    assert.deepEqual(manifests(), ids.toSorted())
  })

  test('keeps a backup that was deleted once and has been recovered since', async () => {
    const server = await world.server({})
    const id = await storedBackup(server)
    const deleted = await withDatabase(service, async (db) => {
      await db
        .insertInto('deleted_backups')
        .values([
          { id, deleted_at: 1 },
          { id: 'bkp_gone', deleted_at: 1 },
        ])
        .execute()
      return deletedAmong(db, [id, 'bkp_gone', 'bkp_unknown'])
    })
    assert.deepEqual(deleted, ['bkp_gone'])
  })

  test('lets go of what was deleted, by itself or with its server, also after a restart', async () => {
    const [kept, emptied] = [await world.server({}), await world.server({})]
    const stays = [await storedBackup(kept), await storedBackup(kept), await storedBackup(kept)]
    const goes = await storedBackup(kept)
    await storedBackup(emptied)
    assert.equal((await service.call('DELETE', `/backups/${kept}/${goes}`)).status, 204)
    const { name } = (await service.call('GET', `/servers/${emptied}`)).body
    assert.equal((await service.call('DELETE', `/servers/${emptied}`, { body: { name, purge: true } })).status, 202)
    await until(async () => (await service.call('GET', `/servers/${emptied}`)).status === 404)
    await service.restart()
    await until(async () => manifests().length === stays.length)
    assert.deepEqual(manifests(), stays.toSorted())
    await until(async () => (await service.call('GET', '/offsite')).body.problem === null)
  })

  test('does not have a backup of which the disk has lost a pack before it was sent, and says so', async () => {
    const gate = Promise.withResolvers<void>()
    const server = await world.server({})
    await storedBackup(server)
    place.faults.before = (call) => (call === 'get' ? gate.promise : undefined)
    await world.write(server, { a: randomBytes(100_000) })
    const { id } = await world.backup(server)
    const sent = namesIn(place.dir, 'packs')
    for (const pack of namesIn(join(service.dataDir, 'backups'), 'packs'))
      if (!sent.includes(pack)) rmSync(join(service.dataDir, 'backups/packs', pack.slice(0, 2), pack))
    gate.resolve()
    const failed = await until(async () => {
      const { body } = await service.call('GET', `/backups/${server}/${id}`)
      return body.offsite.state === 'failed' && body
    })
    assert.equal(failed.offsite.error.code, 'backup_damaged')
    assert.ok(!manifests().includes(id))
    // It stays so, however often everything is told.
    await service.restart()
    await until(async () => (await service.call('GET', '/offsite')).body.lastRun)
    const again = await service.call('GET', `/backups/${server}/${id}`)
    assert.equal(again.body.offsite.state, 'failed')
  })
})

// What a restore is refused for before anything is made, and which safety backups it leaves.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../../test/support/backups.ts'
import { onBothEngines } from '../../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'

onBothEngines('limits of restores', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  test('The request itself refuses a path that the backup does not contain (not_found), before anything is created.', async () => {
    const server = await world.server({ 'world/level.dat': 'one' })
    const { id } = await world.backup(server)
    for (const state of ['two', 'three', 'four']) {
      await world.write(server, { 'world/level.dat': state })
      assert.equal((await world.restore(server, id)).status, 'completed')
    }
    const before = (await service.call('GET', `/backups/${server}`)).body.data
    assert.equal(before.length, 4)
    for (const path of ['/wrold', '/world/level.dta', '/world/level.dat/x']) {
      const refused = await service.call('POST', `/backups/${server}/${id}/restore`, { body: { paths: ['/', path] } })
      assert.equal(refused.body.code, 'not_found', path)
      assert.match(refused.body.detail, /The backup holds no/)
    }
    const broken = await service.call('POST', `/backups/${server}/${id}/restore`, {
      body: { paths: ['/../x', '/', '/..'] },
    })
    assert.equal(broken.body.code, 'invalid_path')
    assert.deepEqual(
      broken.body.errors.map((fault: { path: string }) => fault.path),
      ['/paths/0', '/paths/2'],
    )
    assert.deepEqual((await service.call('GET', `/backups/${server}`)).body.data, before)
    assert.deepEqual((await service.call('GET', `/servers/${server}/jobs?status=failed`)).body.data, [])
  })

  test('A restore that failed or was cancelled removes none.', async () => {
    const server = await world.server({ big: Buffer.alloc(3_000_000, 'a') })
    const { id } = await world.backup(server)
    const other = await world.server({ mine: 'mine' }, { limits: { diskBytes: 2_000_000 } })
    const safeties = async () =>
      (await service.call('GET', `/backups/${other}`)).body.data.map((backup: { id: string }) => backup.id)
    const small = await world.server({ mine: 'theirs' })
    const fits = await world.backup(small)
    const kept: string[] = []
    for (let round = 0; round < 3; round++) {
      const job = await world.restore(small, fits.id, { targetServerId: other })
      kept.unshift((job.result as { safetyBackupId: string }).safetyBackupId)
    }
    for (let round = 0; round < 4; round++) {
      const job = await world.restore(server, id, { targetServerId: other })
      assert.equal(job.error?.code, 'quota_exceeded')
    }
    const all = await safeties()
    assert.deepEqual(all.slice(-3), kept)
    assert.equal(all.length, 7)
    assert.equal((await world.restore(small, fits.id, { targetServerId: other })).status, 'completed')
    const after = await safeties()
    // The oldest goes with the restore that succeeded; what the failed ones have made stays, being newer than the third.
    assert.deepEqual(after.slice(1), all.slice(0, -1))
  })
})

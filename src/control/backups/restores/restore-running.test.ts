// Restores into servers whose games run: the game is stopped for it, and started again however it ends.
import assert from 'node:assert/strict'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { onBothEngines } from '../../../../test/support/engines.ts'
import { withImmutable, withoutImmutable } from '../../../../test/support/immutable.ts'
import { needs } from '../../../../test/support/needs.ts'
import { createSavingGames, type SavingGames } from '../../../../test/support/saving-games.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'

onBothEngines('restores of running servers', (engine) => {
  let service: TestService
  let games: SavingGames
  before(async () => {
    service = await startTestService({ engine })
    games = createSavingGames(service)
    await games.addTemplate('saving')
  })
  after(() => service.stop())

  const ask = (id: string, backupId: string, body: object, options: object = {}) =>
    service.call('POST', `/backups/${id}/${backupId}/restore`, { body: { mode: 'replace', ...body }, ...options })
  const pauseOf = (id: string) => join(games.folder(id), '..', 'game', 'paused.json')
  const wreck = (id: string) => writeFileSync(join(games.folder(id), 'level.dat'), 'wrecked')

  test(
    'Then the game is stopped by its ladder before the safety backup, which so has all that the game saved last',
    needs('bubblewrap'),
    async () => {
      const id = await games.run({ 'level.dat': 'old' })
      const backup = await games.backup(id)
      wreck(id)
      const refused = await ask(id, backup.id, {})
      assert.deepEqual([refused.status, refused.body.code], [409, 'server_running'])
      const { token } = await service.mint(['backups:write'], [id])
      const forbidden = await ask(id, backup.id, { stop: true }, { token })
      assert.deepEqual([forbidden.status, /power:write/.test(forbidden.body.detail)], [403, true])
      const job = await games.restore(id, backup.id, { stop: true })
      assert.equal(job.status, 'completed', JSON.stringify(job.error))
      const result = job.result as { isRestarted: boolean; safetyBackupId: string }
      assert.equal(result.isRestarted, true)
      assert.deepEqual(
        [games.read(id, 'level.dat'), (await games.reach(id, 'running')).exit?.reason],
        ['old', 'requested'],
      )
      const safety = (await service.call('GET', `/backups/${id}/${result.safetyBackupId}`)).body
      assert.equal(safety.consistency, 'offline', 'it has what the game saved when it stopped')
      const told = ['backup.restore_started', 'power.requested', 'game.stopped', 'game.running', 'backup.restored']
      const events = await until(async () => {
        const all = (await games.events(id)).reverse()
        const since = all.slice(all.indexOf('backup.restore_started')).filter((event) => told.includes(event))
        return since.length === told.length && since
      })
      // The restore is recorded while the game comes up.
      assert.deepEqual([...events.slice(0, 3), ...events.slice(3).sort().reverse()], told)
      await games.power(id, 'stop')
    },
  )

  test('If the restore fails or is cancelled, the old world is started again.', needs('bubblewrap'), async () => {
    const id = await games.run({ 'level.dat': 'a world that only this backup has' })
    const packs = join(service.dataDir, 'backups', 'packs')
    const before = new Set(readdirSync(packs, { recursive: true }).map(String))
    const backup = await games.backup(id, { name: 'soon damaged' })
    wreck(id)
    const fresh = readdirSync(packs, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    for (const entry of fresh) {
      const path = join(entry.parentPath, entry.name)
      if (!before.has(path.slice(packs.length + 1))) rmSync(path)
    }
    const job = await games.restore(id, backup.id, { stop: true, safetyBackup: false })
    assert.deepEqual([job.status, job.error?.code], ['failed', 'backup_damaged'])
    await games.reach(id, 'running')
    assert.equal(games.read(id, 'level.dat'), 'wrecked')

    await games.write(id, { slow: '' })
    const { body } = await ask(id, (await games.backup(id)).id, { stop: true })
    await games.reach(id, 'stopping')
    assert.equal((await service.call('DELETE', `/servers/${id}/jobs/${body.id}`)).status, 202)
    rmSync(join(games.folder(id), 'slow'))
    assert.equal((await games.jobEnded(id, body.id)).status, 'cancelled')
    await games.reach(id, 'running')
    await games.power(id, 'kill')
  })

  test('a game that did not run is not started', needs('bubblewrap'), async () => {
    const id = await games.create({ 'level.dat': 'old' })
    const backup = await games.backup(id)
    wreck(id)
    const job = await games.restore(id, backup.id, { stop: true })
    assert.deepEqual([job.status, (job.result as { isRestarted: boolean }).isRestarted], ['completed', false])
    assert.equal((await games.stateOf(id)).state, 'stopped')
  })

  // What follows is all on the agent's disk.
  if (engine !== 'sqlite') return

  test('A restore that stops in the middle keeps the game down until it is finished, in either direction.', {
    ...needs('bubblewrap'),
    skip: withoutImmutable(),
  }, async () => {
    const id = await games.run({ 'level.dat': 'old', 'locked/file': 'old' })
    const backup = await games.backup(id)
    wreck(id)
    writeFileSync(join(games.folder(id), 'locked', 'file'), 'newer')
    await withImmutable(join(games.folder(id), 'locked', 'file'), async () => {
      const job = await games.restore(id, backup.id, { stop: true })
      assert.deepEqual([job.status, job.error?.code], ['failed', 'restore_unfinished'])
      assert.equal((await games.stateOf(id)).state, 'stopped')
      const start = await service.call('POST', `/servers/${id}/power`, { body: { action: 'start' } })
      assert.equal(start.body.code, 'server_busy')
      await service.restart()
      assert.equal((await games.stateOf(id)).state, 'stopped')
    })
    const finish = await service.call('POST', `/servers/${id}/restore/finish`, { body: { direction: 'forward' } })
    assert.equal((await games.jobEnded(id, finish.body.id)).status, 'completed')
    await games.reach(id, 'running')
    assert.equal(games.read(id, 'level.dat'), 'old')
    await games.power(id, 'stop')
  })

  test('a service that is stopped in the middle goes on after its next start', needs('bubblewrap'), async () => {
    const id = await games.run({ 'level.dat': 'old' })
    const backup = await games.backup(id)
    wreck(id)
    const { body } = await ask(id, backup.id, { stop: true })
    await until(async () => (await games.stateOf(id)).state !== 'running')
    await service.restart()
    assert.equal((await games.jobEnded(id, body.id)).status, 'completed')
    await games.reach(id, 'running')
    assert.equal(games.read(id, 'level.dat'), 'old')
    await games.power(id, 'stop')
    await games.reach(id, 'stopped')
  })

  test(
    'a game that is paused for a job that nobody knows any more is started at the next start',
    needs('bubblewrap'),
    async () => {
      const id = await games.run()
      await games.power(id, 'stop')
      await games.reach(id, 'stopped')
      writeFileSync(pauseOf(id), JSON.stringify({ jobId: 'job_gone' }))
      const start = await service.call('POST', `/servers/${id}/power`, { body: { action: 'start' } })
      assert.equal(start.body.code, 'server_busy')
      await service.restart()
      await games.reach(id, 'running')
      await games.power(id, 'stop')
      await games.reach(id, 'stopped')
      writeFileSync(pauseOf(id), JSON.stringify({ jobId: 'job_gone' }))
      await games.power(id, 'stop')
      await service.restart()
      assert.equal((await games.stateOf(id)).state, 'stopped', 'somebody wants it to stay so')
    },
  )
})

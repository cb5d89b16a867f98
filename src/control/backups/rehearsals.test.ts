// Rehearsals through the front door: the game of a backup is started beside its server, which does not notice.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { freePort } from '../../../test/support/free-port.ts'
import { gameFile } from '../../../test/support/games.ts'
import { needs } from '../../../test/support/needs.ts'
import { isGone, rehearsalsOf, rehearsalUnderWay } from '../../../test/support/rehearsals.ts'
import { createSavingGames, type SavingGames } from '../../../test/support/saving-games.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'

onBothEngines('rehearsals', (engine) => {
  let service: TestService
  let games: SavingGames
  before(async () => {
    service = await startTestService({ engine })
    games = createSavingGames(service)
    await games.addTemplate('saving')
  })
  after(() => service.stop())

  const scratch = () => rehearsalsOf(service.dataDir)
  const start = (id: string, backupId: string, body: object = {}) =>
    service.call('POST', `/backups/${id}/${backupId}/rehearse`, { body })
  async function rehearse(id: string, backupId: string, body: object = {}) {
    const reply = await start(id, backupId, body)
    assert.equal(reply.status, 202, reply.text)
    const job = await games.jobEnded(id, reply.body.id)
    return { ...job, result: job.result as { outcome: string; reason: string | null } | null }
  }
  const readBackup = async (id: string, backupId: string) =>
    (await service.call('GET', `/backups/${id}/${backupId}`)).body
  const logOf = async (id: string, backupId: string) =>
    (await service.call('GET', `/backups/${id}/${backupId}/rehearsal`)).body

  const underWay = (id: string) => rehearsalUnderWay(service.dataDir, id)

  test(
    'The server itself is not touched: neither its files, its console, its power state nor its players.',
    needs('bubblewrap'),
    async () => {
      await using listener = createServer().listen(0, '127.0.0.1')
      await once(listener, 'listening')
      const { port } = listener.address() as AddressInfo
      const own = await freePort()
      const id = await games.run({ target: String(port) }, { port: own })
      assert.ok((await games.saidBy(id)).includes(`Reached ${port}`))
      const backup = await games.backup(id)
      assert.deepEqual([backup.rehearsedAt, backup.rehearsal], [null, null])
      assert.equal((await service.call('GET', `/backups/${id}/${backup.id}/rehearsal`)).status, 404)
      await until(async () => (await games.saidBy(id)).includes('Automatic saving is now enabled'))
      const before = { said: (await games.saidBy(id)).length, power: await games.stateOf(id) }
      const job = await rehearse(id, backup.id)
      assert.equal(job.status, 'completed', JSON.stringify(job.error))
      assert.deepEqual(job.result, { backupId: backup.id, outcome: 'passed', reason: null })
      const { rehearsedAt, rehearsal } = await readBackup(id, backup.id)
      assert.deepEqual(rehearsal, { outcome: 'passed', at: rehearsedAt, reason: null })
      const { log } = await logOf(id, backup.id)
      for (const line of [`Listening on ${own}`, `Cannot reach ${port}`, 'Interfaces: lo', 'Done (0.1s)!'])
        assert.ok(log.includes(line), `${line}\n${log.join('\n')}`)
      assert.match(log.join('\n'), /Saved and stopped at \d+\nEnded with exit code 0\.$/)
      assert.deepEqual({ said: (await games.saidBy(id)).length, power: await games.stateOf(id) }, before)
      assert.ok(!existsSync(scratch()))
      assert.deepEqual((await games.events(id)).slice(0, 2), ['backup.rehearsed', 'job.started'])
      await games.power(id, 'stop')
    },
  )

  test('a backup of a wrecked world fails its rehearsal, with the log that says why', needs('bubblewrap'), async () => {
    const id = await games.create({ 'a.dat': '5', 'b.dat': '5' })
    const sound = await games.backup(id)
    assert.equal((await rehearse(id, sound.id)).result?.outcome, 'passed')
    await games.write(id, { 'b.dat': '4' })
    const wrecked = await games.backup(id)
    const job = await rehearse(id, wrecked.id)
    assert.deepEqual([job.status, job.result?.outcome], ['completed', 'failed'])
    const { rehearsedAt, rehearsal } = await readBackup(id, wrecked.id)
    assert.deepEqual([rehearsedAt, rehearsal.outcome], [null, 'failed'])
    assert.match(rehearsal.reason, /ended before it was up for good, with exit code 3/)
    assert.ok((await logOf(id, wrecked.id)).log.includes('The world is torn: 5 and 4'))
    assert.equal((await games.events(id))[0], 'backup.rehearsal_failed')
    assert.equal((await service.call('DELETE', `/backups/${id}/${sound.id}`)).status, 204)
    assert.ok(!existsSync(scratch()))
  })

  test('a schedule rehearses the newest backup, and leaves out one that has passed', needs('bubblewrap'), async () => {
    const id = await games.create()
    const body = { name: 'Weekly', cron: '0 5 * * 0', action: 'rehearse', onlyIfChanged: true }
    const schedule = (await service.call('POST', `/backups/${id}/schedules`, { body })).body
    assert.equal(schedule.action, 'rehearse')
    const isDue = () =>
      withDatabase(service, (db) =>
        db.updateTable('schedules').set({ next_run_at: 1000 }).where('id', '=', schedule.id).execute(),
      )
    const outcome = (wanted: string) =>
      until(async () => {
        const { lastOutcome, lastBackupId } = (await service.call('GET', `/backups/${id}/schedules/${schedule.id}`))
          .body
        return lastOutcome === wanted && { lastBackupId }
      })
    await isDue()
    await outcome('not_found')
    const backup = await games.backup(id)
    await isDue()
    assert.equal((await outcome('started')).lastBackupId, backup.id)
    await until(async () => (await readBackup(id, backup.id)).rehearsedAt !== null)
    await isDue()
    await outcome('unchanged')
  })

  // What follows is all on the agent's disk.
  if (engine !== 'sqlite') return

  test(
    'a game that is not up in time, or whose program is missing, fails; nothing of it is left',
    needs('bubblewrap'),
    async () => {
      const id = await games.create({ never: '' })
      const backup = await games.backup(id)
      const late = await rehearse(id, backup.id, { timeoutSeconds: 1 })
      assert.match(String(late.result?.reason), /not up within 1 s/)
      const empty = await games.server({}, { game: 'saving' })
      const missing = await rehearse(empty, (await games.backup(empty)).id)
      assert.match(String(missing.result?.reason), /\/start is missing/)
      assert.ok(!existsSync(scratch()))
    },
  )

  test(
    'one that is cancelled, or whose service is stopped, ends its game and takes its files away',
    needs('bubblewrap'),
    async () => {
      const id = await games.create({ never: '' })
      const backup = await games.backup(id)
      const first = (await start(id, backup.id)).body
      const game = await underWay(id)
      await service.restart()
      assert.ok(isGone(game))
      const again = await underWay(id)
      assert.equal((await service.call('DELETE', `/servers/${id}/jobs/${first.id}`)).status, 202)
      assert.equal((await games.jobEnded(id, first.id)).status, 'cancelled')
      assert.ok(isGone(again) && !existsSync(scratch()))
      assert.deepEqual((await readBackup(id, backup.id)).rehearsal, null)
    },
  )

  test('a game in a rehearsal sees no more than in its server', needs('bubblewrap'), async () => {
    const id = await games.create()
    const other = await games.create()
    const hidden = [
      ...[service.dataDir, join(service.dataDir, 'secret.key'), games.folder(id), games.folder(other)],
      ...['/etc/shadow', join(scratch(), 'servers')],
    ]
    copyFileSync(gameFile('spy'), join(games.folder(id), 'start'))
    await games.write(id, { targets: `${hidden.join('\n')}\n` })
    const backup = await games.backup(id)
    assert.equal((await rehearse(id, backup.id)).result?.outcome, 'passed')
    const log = ((await logOf(id, backup.id)).log as string[]).join('\n')
    for (const path of hidden) assert.ok(log.includes(`kept from ${path}`), log)
    assert.doesNotMatch(log, /READ|SEEN|LEAKED|WROTE|GAMEKEEPER/)
    assert.doesNotMatch(log, /^id 0 /m)
  })
})

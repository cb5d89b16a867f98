// Backups of running games through the front door: the world is held still for them, or they say why not.
import assert from 'node:assert/strict'
import { copyFileSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { gameFile } from '../../../test/support/games.ts'
import { needs } from '../../../test/support/needs.ts'
import { createSavingGames, type SavingGames } from '../../../test/support/saving-games.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'

suite('backups of a running game', needs('bubblewrap'), () => {
  let service: TestService
  let games: SavingGames
  before(async () => {
    service = await startTestService()
    games = createSavingGames(service)
    await games.addTemplate('saving')
    await games.addTemplate('impatient', 1)
  })
  after(() => service.stop())

  const begin = async (id: string): Promise<string> => (await service.call('POST', `/backups/${id}`, {})).body.id
  const asked = (id: string) => until(async () => (await games.commandsOf(id)).includes('save-all'))
  const noteOf = (id: string) => join(games.folder(id), '..', 'game', 'held.json')
  const textIn = async (id: string, backupId: string, path: string) =>
    (await service.call('GET', `/backups/${id}/${backupId}/files/content?path=${path}`)).text

  test('As soon as the last file has been read, the commands of `after` let the game go on', async () => {
    const id = await games.run()
    const backup = await games.backup(id)
    assert.deepEqual([backup.consistency, backup.warnings], ['quiesced', []])
    assert.ok(backup.heldMs !== null && backup.heldMs >= 0)
    assert.equal(await textIn(id, backup.id, '/a.dat'), await textIn(id, backup.id, '/b.dat'))
    assert.deepEqual(await games.commandsOf(id), ['save-off', 'save-all', 'save-on'])
    assert.ok(!existsSync(noteOf(id)))
    const { data } = (await service.call('GET', `/servers/${id}/activity?event=backup.completed`)).body
    assert.deepEqual([data[0].properties.consistency, data[0].properties.heldMs], ['quiesced', backup.heldMs])
    await games.power(id, 'stop')
    await games.reach(id, 'stopped')
    const offline = await games.backup(id)
    assert.deepEqual([offline.consistency, offline.heldMs], ['offline', null])
  })

  test('two at once hold it one after the other', async () => {
    const id = await games.run()
    for (const backupId of [await begin(id), await begin(id)])
      assert.equal((await games.ended(id, backupId)).consistency, 'quiesced')
    const once = ['save-off', 'save-all', 'save-on']
    assert.deepEqual(await games.commandsOf(id), [...once, ...once])
  })

  test('If the game does not answer in time, the backup goes on as `live` with a warning.', async () => {
    const id = await games.run({ mute: '' }, { game: 'impatient' })
    const backup = await games.backup(id)
    assert.deepEqual([backup.consistency, backup.heldMs], ['live', null])
    assert.match(backup.warnings.join('\n'), /did not say within 1 s/)
    assert.deepEqual(await games.commandsOf(id), ['save-off', 'save-all', 'save-on'])
  })

  test('a game whose template has no such commands is `live`, and that is said', async () => {
    const id = await games.server({})
    copyFileSync(gameFile('plain'), join(games.folder(id), 'start'))
    await games.power(id, 'start')
    const backup = await games.backup(id)
    assert.deepEqual([backup.consistency, backup.warnings.length], ['live', 1])
    assert.match(backup.warnings[0] ?? '', /no commands that hold its world still/)
    await games.power(id, 'kill')
  })

  test('a backup that is cancelled in the middle of a hold lets the game go', async () => {
    const id = await games.run({ mute: '' })
    const backupId = await begin(id)
    await asked(id)
    assert.equal((await service.call('DELETE', `/backups/${id}/${backupId}`)).status, 204)
    await until(async () => (await games.commandsOf(id)).at(-1) === 'save-on')
    await until(async () => !existsSync(noteOf(id)))
  })

  test('a stop in the middle of a hold lets the game go first, so that it saves', async () => {
    const id = await games.run({ mute: '' })
    const backupId = await begin(id)
    await asked(id)
    await games.power(id, 'stop')
    await games.reach(id, 'stopped')
    const backup = await games.ended(id, backupId)
    assert.deepEqual([backup.status, backup.consistency], ['completed', 'live'])
    assert.match(backup.warnings.join('\n'), /was stopped, or ended/)
    assert.deepEqual(await games.commandsOf(id), ['save-off', 'save-all', 'save-on', 'stop'])
    assert.match((await games.saidBy(id)).at(-1) ?? '', /^Saved and stopped/)
  })

  test('a kill in the middle of a hold ends it at once', async () => {
    const id = await games.run({ mute: '' })
    const backupId = await begin(id)
    await asked(id)
    await games.power(id, 'kill')
    await games.reach(id, 'stopped')
    assert.equal((await games.ended(id, backupId)).consistency, 'live')
    assert.ok(!existsSync(noteOf(id)))
  })

  test('a service that is stopped in the middle of a hold lets the game go, and makes the backup after its next start', async () => {
    const id = await games.run({ mute: '' })
    const backupId = await begin(id)
    await asked(id)
    await service.halt()
    assert.ok(!existsSync(noteOf(id)))
    rmSync(join(games.folder(id), 'mute'))
    await service.restart()
    assert.equal((await games.ended(id, backupId)).consistency, 'quiesced')
    const once = ['save-off', 'save-all', 'save-on']
    assert.deepEqual(await games.commandsOf(id), [...once, ...once])
  })
})

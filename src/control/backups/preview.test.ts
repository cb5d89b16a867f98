// What a backup would leave out, counted before it is made.
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../test/support/backups.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'

const FILES = { 'logs/a.log': 'four', 'logs/old/b.log': 'five5', 'world/level.dat': 'level', 'c.tmp': 'c', d: '' }

onBothEngines('previews of backups', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  const preview = (serverId: string, body: object, token = service.adminToken) =>
    service.call('POST', `/backups/${serverId}/preview`, { body, token })

  test('The preview counts the files that a backup with the same patterns then holds, and changes nothing.', async () => {
    const id = await world.server(FILES)
    for (const ignored of ['', 'logs/', '*.log\n!a.log', '/world\n*.tmp\nd', '**/old/**']) {
      const { body, status, text } = await preview(id, { ignored })
      assert.equal(status, 200, text)
      const { fileCount, sizeBytes } = await world.backup(id, { ignored })
      assert.deepEqual([body.kept, body.ignored, body.isComplete], [{ fileCount, sizeBytes }, ignored, true])
      assert.deepEqual(body.leftOut, { fileCount: 5 - (fileCount ?? 0), sizeBytes: 15 - (sizeBytes ?? 0) })
    }
    const events = await world.events(id)
    assert.deepEqual(
      events.filter((event) => !event.startsWith('backup.')),
      [],
    )
  })

  test('without patterns the .backupignore counts, and what the template leaves out comes before', async () => {
    const template = {
      ...{ format: 1, id: 'tidy', name: 'Tidy', runtimes: ['process'], start: { args: ['./start'] } },
      ...{ stop: [{ signal: 'SIGINT', timeoutSeconds: 5 }], ignored: ['/logs/'] },
    }
    assert.equal((await service.call('POST', '/templates', { body: template })).status, 201)
    const id = await world.server({ ...FILES, '.backupignore': '*.tmp' }, { game: 'tidy' })
    const own = (await preview(id, {})).body
    assert.deepEqual([own.ignored, own.leftOut], ['/logs/\n*.tmp', { fileCount: 3, sizeBytes: 10 }])
    const given = (await preview(id, { ignored: '!/logs/' })).body
    assert.deepEqual([given.ignored, given.leftOut.fileCount], ['/logs/\n!/logs/', 0])
  })

  test('it needs backups:read and a server that the token sees', async () => {
    const id = await world.server({})
    const { token: writer } = await service.mint(['backups:write'], [id])
    assert.equal((await preview(id, {}, writer)).status, 403)
    const { token: reader } = await service.mint(['backups:read'], [id])
    assert.equal((await preview(id, {}, reader)).status, 200)
    assert.equal((await preview(await world.server({}), {}, reader)).status, 404)
    const long = await preview(id, { ignored: 'ä'.repeat(20_000) })
    assert.deepEqual([long.status, long.body.errors[0].path], [400, '/ignored'])
  })
})

test('Hostile patterns over many files end in time, with what was counted until then.', async () => {
  await using service = await startTestService()
  const world = createWorld(service)
  const id = await world.server({})
  const folder = join(world.folder(id), 'deep')
  await mkdir(folder)
  const name = 'ab'.repeat(120)
  for (let number = 0; number < 300; number++) await writeFile(join(folder, `${name}${number}`), 'x')
  const ignored = Array.from({ length: 120 }, (_, index) => `*${'?a*[ab]'.repeat(38)}${index}`).join('\n')
  const { body } = await service.call('POST', `/backups/${id}/preview`, { body: { ignored } })
  assert.ok(body.kept.fileCount + body.leftOut.fileCount <= 300)
  assert.equal(body.kept.fileCount + body.leftOut.fileCount === 300, body.isComplete)
})

// What the template of a server leaves out of its backups.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorld } from '../../../test/support/backups.ts'
import { startTestService } from '../../../test/support/service.ts'

test("What the server's template leaves out comes before either, so a pattern of the request takes it back", async () => {
  const service = await startTestService()
  try {
    const world = createWorld(service)
    const template = {
      ...{ format: 1, id: 'logging', name: 'Logging', runtimes: ['process'], start: { args: ['./start'] } },
      ...{ stop: [{ signal: 'SIGINT', timeoutSeconds: 5 }], ignored: ['/logs/', '*.tmp'] },
    }
    assert.equal((await service.call('POST', '/templates', { body: template })).status, 201)
    const files = { 'logs/a.log': 'a', 'b.tmp': 'b', 'c.bak': 'c', 'level.dat': 'd', '.backupignore': '*.bak' }
    const id = await world.server(files, { game: 'logging' })
    const plain = await world.backup(id)
    assert.deepEqual(await world.names(id, plain.id), ['.backupignore', 'level.dat'])
    assert.equal(plain.ignored, '/logs/\n*.tmp\n*.bak')
    const wider = await world.backup(id, { ignored: '!/logs/\nlevel.dat' })
    assert.deepEqual((await world.names(id, wider.id)).sort(), ['.backupignore', 'c.bak', 'logs'])
    assert.equal(wider.ignored, '/logs/\n*.tmp\n!/logs/\nlevel.dat')
  } finally {
    await service.stop()
  }
})

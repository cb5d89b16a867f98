// What a restore leaves in staging is its report, for whoever has to record it, and goes once nobody has to.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { readdir } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../../test/support/backups.ts'
import { onBothEngines } from '../../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'

/** The disk refuses to remove the report of a restore until the end of the block. */
function keepingReports(): Disposable & { attempts(): number } {
  const { unlink } = fs.promises
  let attempts = 0
  fs.promises.unlink = async (path) => {
    if (!String(path).endsWith('/done')) return await unlink(path)
    attempts++
    throw Object.assign(new Error('EIO: injected, unlink'), { code: 'EIO' })
  }
  syncBuiltinESMExports()
  return {
    attempts: () => attempts,
    [Symbol.dispose]() {
      fs.promises.unlink = unlink
      syncBuiltinESMExports()
    },
  }
}

onBothEngines('what restores leave', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  const staging = (server: string) => readdir(join(service.dataDir, 'servers', server, 'staging'))

  test('a report that could not be removed when the restore was recorded goes at the next start that can', async () => {
    const server = await world.server({ a: 'old' })
    const { id } = await world.backup(server)
    await world.write(server, { a: 'new' })
    {
      using disk = keepingReports()
      const job = await world.restore(server, id, { safetyBackup: false })
      assert.equal(job.status, 'completed', JSON.stringify(job.error))
      await until(async () => disk.attempts() > 0)
      await service.restart()
      assert.deepEqual(await staging(server), [`restore-${job.id}`])
    }
    await service.restart()
    assert.deepEqual(await staging(server), [])
    const events = await world.events(server)
    assert.equal(events.filter((event) => event === 'backup.restored').length, 1)
  })
})

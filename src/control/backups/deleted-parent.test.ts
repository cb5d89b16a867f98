// A backup is compared with the one before it while it runs. That one may be deleted meanwhile.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../test/support/backups.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'

/** A manifest of several chunks, more than are read ahead of a file that is still being read. */
const FILES = 6000
/** The first file in walk order, new in the second backup: at this rate it takes longer to read than a deletion. */
const RATE = 1_000_000
const FIRST_BYTES = 4_000_000

onBothEngines('deleting the backup before one that runs', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine, env: { GAMEKEEPER_BACKUP_RATE: String(RATE) } })
    world = createWorld(service)
  })
  after(() => service.stop())

  /** On a machine that is busy otherwise the deletion may come too late: then once more, with the next two. */
  async function deletedBeneath(server: string, tries = 3): Promise<string> {
    const first = await world.backup(server)
    await world.write(server, { '!first': randomBytes(FIRST_BYTES) })
    const [second = ''] = await world.start(server, 1)
    const status = async () => (await service.call('GET', `/backups/${server}/${second}`)).body.status
    await until(async () => (await status()) === 'running')
    assert.equal((await service.call('DELETE', `/backups/${server}/${first.id}`)).status, 204)
    const manifest = join(service.dataDir, 'backups/manifests', server, first.id)
    await until(async () => !existsSync(manifest))
    if ((await status()) === 'running') return second
    assert.ok(tries > 1, 'it must be deleted while the next one runs')
    return deletedBeneath(server, tries - 1)
  }

  test('breaks neither of them, and what is left holds everything', async () => {
    const names = Array.from({ length: FILES }, (_, index) => `${String(index).padStart(5, '0')}-${'x'.repeat(190)}`)
    const server = await world.server(Object.fromEntries(names.map((name) => [name, ''])))
    const second = await deletedBeneath(server)
    const made = await world.ended(server, second)
    assert.equal(made.status, 'completed', JSON.stringify(made.error))
    assert.equal(made.fileCount, FILES + 1)
    await rm(join(world.folder(server), names[FILES - 1] ?? ''))
    const restored = await world.restore(server, second, { safetyBackup: false })
    assert.equal(restored.status, 'completed', JSON.stringify(restored.error))
    assert.ok(existsSync(join(world.folder(server), names[FILES - 1] ?? '')))
  })
})

// The disk fails at the borders between the phases of a restore: what is answered is what there is, also after a restart.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../../test/support/backups.ts'
import { onBothEngines } from '../../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'
import type { Job } from '../../../contract/jobs.ts'

const EIO = () => Object.assign(new Error('EIO: injected'), { code: 'EIO' })

/** Puts functions in the place of those of `node:fs` until the end of the block. */
function replacing(replaced: Partial<typeof fs>): Disposable {
  const before = Object.fromEntries(Object.keys(replaced).map((name) => [name, fs[name as keyof typeof fs]]))
  Object.assign(fs, replaced)
  syncBuiltinESMExports()
  return {
    [Symbol.dispose]() {
      Object.assign(fs, before)
      syncBuiltinESMExports()
    },
  }
}

/** The first rename to this phase happens, and the disk then says that it has failed: as a sync after it would. */
function failingAfter(phase: string): Disposable {
  const { renameSync } = fs
  let isSpent = false
  return replacing({
    renameSync(from, to) {
      renameSync(from, to)
      if (isSpent || !String(to).endsWith(`/${phase}`)) return
      isSpent = true
      throw EIO()
    },
  })
}

/** Once a restore is committed, its folder cannot be opened once. */
function failingToOpenAfterCommit(): Disposable {
  const { openSync, renameSync } = fs
  let isCommitted = false
  return replacing({
    renameSync(from, to) {
      renameSync(from, to)
      if (String(to).endsWith('/forward')) isCommitted = true
    },
    openSync(path, ...rest) {
      if (!isCommitted || !/\/restore-job_\w+$/.test(String(path))) return openSync(path, ...rest)
      isCommitted = false
      throw EIO()
    },
  })
}

onBothEngines('a disk that fails during a restore', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  const content = (server: string) => readFile(join(world.folder(server), 'a'), 'utf8')
  const staging = (server: string) => readdir(join(service.dataDir, 'servers', server, 'staging'))
  const unfinished = async (server: string) => (await service.call('GET', `/servers/${server}`)).body.unfinishedRestore
  const count = async (server: string, event: string) =>
    (await world.events(server)).filter((name) => name === event).length

  /** A restore of `old` over `new` on such a disk. */
  async function restoreOn(disk: () => Disposable): Promise<{ server: string; backupId: string; job: Job }> {
    const server = await world.server({ a: 'old' })
    const { id } = await world.backup(server)
    await world.write(server, { a: 'new' })
    using _disk = disk()
    return { server, backupId: id, job: await world.restore(server, id, { safetyBackup: false }) }
  }

  async function finish(server: string, direction: 'forward' | 'back'): Promise<Job> {
    const reply = await service.call('POST', `/servers/${server}/restore/finish`, { body: { direction } })
    assert.equal(reply.status, 202, reply.text)
    return world.jobEnded(server, reply.body.id)
  }

  test('at its commit: failed, and no start goes on with it', async () => {
    const { server, job } = await restoreOn(() => failingAfter('forward'))
    assert.equal(job.error?.code, 'disk_failing', JSON.stringify(job))
    await service.restart()
    assert.equal(await content(server), 'new')
    assert.equal(await unfinished(server), null)
    assert.deepEqual(await staging(server), [])
  })

  test('at its commit, and then at the removal of what it has staged: no start goes on with it', async () => {
    const { unlink } = fs.promises
    fs.promises.unlink = async (path) => {
      if (/\/(forward|displace)$/.test(String(path))) throw EIO()
      await unlink(path)
    }
    syncBuiltinESMExports()
    const { server, job } = await restoreOn(() => failingAfter('forward'))
    fs.promises.unlink = unlink
    syncBuiltinESMExports()
    assert.equal(job.status, 'failed')
    await service.restart()
    assert.equal(await content(server), 'new')
    assert.deepEqual(await staging(server), [])
  })

  test('right after its commit: it goes on', async () => {
    const { server, job } = await restoreOn(failingToOpenAfterCommit)
    assert.equal(job.status, 'completed', JSON.stringify(job.error))
    assert.equal(await content(server), 'old')
    assert.equal(await count(server, 'backup.restored'), 1)
  })

  test('when its end is written down: unfinished, and ends either way, also after a restart', async () => {
    for (const direction of ['forward', 'back'] as const) {
      const { server, backupId, job } = await restoreOn(() => failingAfter('done'))
      assert.equal(job.error?.code, 'restore_unfinished', JSON.stringify(job))
      await service.restart()
      assert.equal((await unfinished(server)).backupId, backupId)
      const finished = await finish(server, direction)
      assert.equal(finished.status, 'completed', JSON.stringify(finished.error))
      assert.equal(await content(server), direction === 'forward' ? 'old' : 'new')
      assert.equal(await count(server, 'backup.restored'), direction === 'forward' ? 1 : 0)
      assert.equal(await count(server, 'backup.restore_undone'), direction === 'forward' ? 0 : 1)
    }
  })

  test('in the middle, while it is being cancelled: unfinished, and not cancelled', async () => {
    const server = await world.server({ a: 'old' })
    const { id } = await world.backup(server)
    await world.write(server, { a: 'new' })
    let attempts = 0
    let code = 'EMFILE'
    using disk = replacing({
      linkSync() {
        attempts++
        throw Object.assign(new Error(`${code}: injected, link`), { code })
      },
    })
    const body = { mode: 'replace', safetyBackup: false }
    const asked = await service.call('POST', `/backups/${server}/${id}/restore`, { body })
    // What may pass is tried again, so there is time to cancel.
    await until(async () => attempts > 0)
    await service.call('DELETE', `/servers/${server}/jobs/${asked.body.id}`)
    code = 'EACCES'
    const job = await world.jobEnded(server, asked.body.id)
    assert.equal(job.error?.code, 'restore_unfinished', JSON.stringify(job))
    assert.equal((await unfinished(server)).jobId, job.id)
    assert.equal(await count(server, 'backup.restore_cancelled'), 0)
    disk[Symbol.dispose]()
    assert.equal((await finish(server, 'back')).status, 'completed')
    assert.equal(await content(server), 'new')
  })

  test('when the direction that was chosen is written down: unfinished, and no start goes on with it', async () => {
    const { server } = await restoreOn(() => failingAfter('done'))
    {
      using _disk = failingAfter('back')
      assert.equal((await finish(server, 'back')).error?.code, 'restore_unfinished')
    }
    await service.restart()
    assert.equal(await content(server), 'old')
    assert.notEqual(await unfinished(server), null)
    assert.equal((await finish(server, 'back')).status, 'completed')
    assert.equal(await content(server), 'new')
    assert.equal(await count(server, 'backup.restore_undone'), 1)
  })
})

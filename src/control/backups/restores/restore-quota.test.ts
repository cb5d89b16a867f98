// Restores and the quota: one can always go back to a backup of one's own, and no restore makes a server grow beyond it.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { lstat, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createWorld, type World } from '../../../../test/support/backups.ts'
import { createHttp } from '../../../../test/support/http.ts'
import { killLeftovers, spawnService } from '../../../../test/support/process.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'
import type { Job } from '../../../contract/jobs.ts'

const MB = 1_000_000
const QUOTA = 10 * MB
const LIMITS = { limits: { diskBytes: QUOTA } }

// The quota is the agent's: the database plays no part in it.
describe('restores and the quota', () => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService()
    world = createWorld(service)
  })
  after(async () => {
    killLeftovers()
    await service.stop()
  })

  async function packs(): Promise<string[]> {
    const folder = join(service.dataDir, 'backups/packs')
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  }

  type Files = Record<string, Buffer>
  const some = (megabytes: Record<string, number>): Files =>
    Object.fromEntries(Object.entries(megabytes).map(([path, size]) => [path, randomBytes(size * MB)]))
  const usage = async (server: string) => (await service.call('GET', `/files/${server}/usage`)).body
  const freed = async (server: string) =>
    (await service.call('GET', `/servers/${server}/activity?limit=100`)).body.data.filter(
      ({ event }: { event: string }) => event === 'file.trash_freed',
    )
  const trashed = async (server: string): Promise<string[]> =>
    (await service.call('GET', `/files/${server}/trash`)).body.data.map(({ path }: { path: string }) => path).sort()

  async function bytesOnDisk(server: string): Promise<number> {
    const list = (folder: string) =>
      readdir(join(service.dataDir, 'servers', server, folder), { recursive: true, withFileTypes: true })
    const entries = [...(await list('files')), ...(await list('trash'))].filter((entry) => entry.isFile())
    const sizes = entries.map(async ({ parentPath, name }) => (await lstat(join(parentPath, name))).size)
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
  }

  async function assertFiles(server: string, files: Files): Promise<void> {
    const names = await readdir(world.folder(server), { recursive: true, withFileTypes: true })
    assert.equal(names.filter((entry) => entry.isFile()).length, Object.keys(files).length)
    for (const [path, content] of Object.entries(files))
      assert.ok((await readFile(join(world.folder(server), path))).equals(content), path)
  }

  async function assertRestored(running: Promise<Job>): Promise<void> {
    const job = await running
    assert.equal(job.status, 'completed', JSON.stringify(job.error))
  }

  async function assertRefused(running: Promise<Job>, detail: RegExp): Promise<void> {
    const { error } = await running
    assert.equal(error?.code, 'quota_exceeded', JSON.stringify(error))
    assert.match(error.detail, detail)
  }

  test('a server that uses nine tenths of its quota goes back to its backup, byte for byte', async () => {
    const old = some({ 'world/a': 4, 'world/deep/b': 4, c: 1 })
    const server = await world.server(old, LIMITS)
    const { id } = await world.backup(server)
    for (let round = 0; round < 3; round++) {
      await world.write(server, some({ 'world/a': 4, 'world/deep/b': 4, c: 1 }))
      await assertRestored(world.restore(server, id))
      await assertFiles(server, old)
      const { usedBytes, reservedBytes } = await usage(server)
      assert.ok(usedBytes <= QUOTA, `${usedBytes}`)
      assert.equal(reservedBytes, 0)
      assert.ok((await bytesOnDisk(server)) <= QUOTA)
    }
    // Each round has freed something, which is told a moment later.
    const entries = await until(async () => {
      const told = await freed(server)
      return told.length >= 3 && told
    })
    assert.deepEqual([entries[0].properties.reason, entries[0].properties.requestedBy], ['quota', server])
    const upload = await service.call('PUT', `/files/${server}/content?path=/more`, {
      body: 'more',
      headers: { 'content-type': 'application/octet-stream' },
    })
    assert.equal(upload.status, 201, upload.text)
  })

  test('The tree that the restore leaves has to fit the quota.', async () => {
    const server = await world.server({}, LIMITS)
    const ids: string[] = []
    for (let i = 0; i < 4; i++) {
      await world.write(server, some({ [`only-${i}`]: 3, shared: 1 }))
      ids.push((await world.backup(server)).id)
      await service.call('DELETE', `/files/${server}`, { body: { root: '/', files: [`only-${i}`] } })
      await service.call('DELETE', `/files/${server}/trash`)
    }
    const outcomes = new Set<string>()
    for (let round = 0; round < 12; round++) {
      const before = await usage(server)
      const job = await world.restore(server, ids[round % 4] ?? '', { mode: 'merge', safetyBackup: round % 3 > 0 })
      outcomes.add(job.error?.code ?? job.status)
      const now = await usage(server)
      assert.ok(now.usedBytes <= QUOTA && (await bytesOnDisk(server)) <= QUOTA, `${now.usedBytes} in round ${round}`)
      if (job.error) assert.deepEqual(now, before)
    }
    assert.deepEqual([...outcomes].sort(), ['completed', 'quota_exceeded'])
  })

  test('a restore of more files than another server may have says so, and changes nothing', async () => {
    const server = await world.server({ 'mods/a': 'a', 'mods/b': 'b', c: 'c' })
    const backup = await world.backup(server)
    const other = await world.server({ kept: 'kept' }, { limits: { entries: 4 } })
    const request = { targetServerId: other, mode: 'merge' }
    await assertRefused(
      world.restore(server, backup.id, request),
      /how many files and directories this server may have/,
    )
    assert.deepEqual(await readdir(world.folder(other)), ['kept'])
  })

  test('With safetyBackup: false nothing displaced is freed', async () => {
    const server = await world.server(some({ world: 6 }), LIMITS)
    const { id } = await world.backup(server)
    const newer = some({ world: 6 })
    await world.write(server, newer)
    for (const mode of ['replace', 'merge'])
      await assertRefused(
        world.restore(server, id, { mode, safetyBackup: false }),
        /Make room, or let .* safety backup/,
      )
    await assertFiles(server, newer)
    assert.deepEqual(await trashed(server), [])
    await assertRestored(world.restore(server, id))

    const small = await world.server(some({ world: 4, rubbish: 5 }), LIMITS)
    const backup = await world.backup(small)
    await service.call('DELETE', `/files/${small}`, { body: { root: '/', files: ['rubbish'] } })
    const changed = some({ world: 4 })
    await world.write(small, changed)
    await assertRestored(world.restore(small, backup.id, { paths: ['/world'], safetyBackup: false }))
    // Older trash makes way, and what was displaced is all there.
    assert.deepEqual(await trashed(small), ['/world'])
    assert.ok((await usage(small)).usedBytes <= QUOTA)
    const [item] = (await service.call('GET', `/files/${small}/trash`)).body.data
    const inTrash = join(service.dataDir, 'servers', small, 'trash', item.id.slice(0, 30), item.id.slice(30))
    assert.ok((await readFile(inTrash)).equals(changed.world as Buffer))
  })

  test('An item that this restore displaced is freed only if the store still has all of its content.', async () => {
    const server = await world.server(some({ world: 1.5 }), LIMITS)
    const old = await world.backup(server)
    const packsBefore = await packs()
    const newer = some({ world: 1.5, sound: 1.5 })
    await world.write(server, newer)
    await world.backup(server)
    const [pack = ''] = (await packs()).filter((path) => !packsBefore.includes(path))
    const bytes = await readFile(pack)
    const at = bytes.indexOf((newer.world as Buffer).subarray(700_000, 700_064))
    assert.notEqual(at, -1)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    await writeFile(pack, bytes)
    await service.call('PATCH', `/servers/${server}`, { body: { limits: { diskBytes: 2 * MB } } })
    // The safety backup lists the blocks that are in the store already.
    await assertRestored(world.restore(server, old.id))
    assert.deepEqual(await trashed(server), ['/world'])
    const [item] = (await service.call('GET', `/files/${server}/trash`)).body.data
    const inTrash = join(service.dataDir, 'servers', server, 'trash', item.id.slice(0, 30), item.id.slice(30))
    assert.ok((await readFile(inTrash)).equals(newer.world as Buffer))
  })

  test('A replace of everything from a backup of the same server is never refused for the quota, even if it has been lowered since.', async () => {
    const old = some({ a: 4, b: 4 })
    const server = await world.server(old, LIMITS)
    const { id } = await world.backup(server)
    await world.write(server, some({ a: 1 }))
    await service.call('DELETE', `/files/${server}`, { body: { root: '/', files: ['b'] } })
    const lowered = await service.call('PATCH', `/servers/${server}`, { body: { limits: { diskBytes: 5 * MB } } })
    assert.equal(lowered.status, 200, lowered.text)
    await assertRefused(world.restore(server, id, { mode: 'merge' }), /would exceed the disk quota/)
    await assertRefused(world.restore(server, id, { paths: ['/a', '/b'] }), /would exceed the disk quota/)
    await assertRestored(world.restore(server, id))
    await assertFiles(server, old)
    // Everything that may go has gone.
    assert.deepEqual(await trashed(server), [])
    // A part that makes the files no larger is not refused either.
    await world.write(server, some({ a: 4 }))
    await assertRestored(world.restore(server, id, { paths: ['/a'] }))
    await assertFiles(server, old)
  })

  test("another server's backup must fit the quota of the server that it is restored into", async () => {
    const source = await world.server(some({ a: 6, b: 6 }))
    const { id } = await world.backup(source)
    const mine = some({ mine: 2 })
    const target = await world.server(mine, LIMITS)
    await assertRefused(world.restore(source, id, { targetServerId: target }), /would exceed the disk quota/)
    await assertFiles(target, mine)
    assert.deepEqual(await trashed(target), [])
    await assertRestored(world.restore(source, id, { targetServerId: target, paths: ['/a'] }))
    assert.ok((await usage(target)).usedBytes <= QUOTA)
  })

  test('what a .backupignore left out, or somebody has written since, stays in the trash', async () => {
    const server = await world.server(some({ cache: 6 }), LIMITS)
    const { id } = await world.backup(server)
    const unsaved = some({ cache: 6 })
    await world.write(server, { ...unsaved, '.backupignore': 'cache\n' })
    await assertRestored(world.restore(server, id))
    assert.ok((await trashed(server)).includes('/cache'))
    const { data } = (await service.call('GET', `/files/${server}/trash`)).body
    const item = data.find(({ path }: { path: string }) => path === '/cache')
    const inTrash = join(service.dataDir, 'servers', server, 'trash', item.id.slice(0, 30), item.id.slice(30))
    assert.ok((await readFile(inTrash)).equals(unsaved.cache as Buffer))
    // The next restore frees it, as any older trash: it does not add up.
    await world.write(server, some({ cache: 6 }))
    await assertRestored(world.restore(server, id))
    assert.ok((await bytesOnDisk(server)) <= 13 * MB)
  })

  test('killed between the swap and the freeing, or in it, the next start frees down to the quota', async () => {
    for (const call of ['fs.mkdirSync', 'fs.promises.unlink']) {
      const old = some({ a: 5, b: 4 })
      const server = await world.server(old, LIMITS)
      const { id } = await world.backup(server)
      await world.write(server, some({ a: 5, b: 4 }))
      await service.halt()
      await restoreAndDie(service, server, id, call)
      assert.ok((await bytesOnDisk(server)) > QUOTA)
      await service.restart()
      await assertFiles(server, old)
      const { usedBytes, trashBytes } = await usage(server)
      assert.ok(usedBytes <= QUOTA && (await bytesOnDisk(server)) <= QUOTA, `${usedBytes} after ${call}`)
      // No more has gone than had to.
      await until(async () => (await freed(server)).length > 0)
      assert.equal((await freed(server)).length, 1)
      assert.deepEqual([await trashed(server), trashBytes > 0], [[], false])
    }
  })
})

/** Has a process of its own restore the backup. It dies when it is about to do this for the first item that it frees. */
async function restoreAndDie(service: TestService, server: string, backupId: string, call: string): Promise<void> {
  const hook = `
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const real = ${call}
    ${call} = (path, ...more) => {
      if (/freeing-|emptying-/.test(fs.realpathSync(String(path).replace(/\\/[^/]*$/, '')) + path)) process.kill(process.pid, 'SIGKILL')
      return real(path, ...more)
    }
    syncBuiltinESMExports()`
  const env = {
    GAMEKEEPER_DATA_DIR: service.dataDir,
    GAMEKEEPER_ADMIN_TOKEN: service.adminToken,
    ...(service.databaseUrl === null ? {} : { GAMEKEEPER_DATABASE_URL: service.databaseUrl }),
  }
  const doomed = await spawnService(env, { preload: `data:text/javascript,${encodeURIComponent(hook)}` })
  const http = createHttp(doomed.url, service.adminToken)
  const reply = await http.call('POST', `/backups/${server}/${backupId}/restore`, { mode: 'replace' })
  assert.equal(reply.status, 202)
  assert.equal(await doomed.exited, 'SIGKILL')
}

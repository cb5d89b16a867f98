// A folder that somebody has run a game from becomes a server, as its owner does it: on the machine, with the service stopped.
import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { moveIntoServer } from '../src/agent/adopt.ts'
import { assertSameTree, snapshot } from '../src/agent/backups/backups.testing.ts'
import { layout } from '../src/agent/layout.ts'
import { onBothEngines } from './support/engines.ts'
import { startTestService, type TestService } from './support/service.ts'
import { runPiped } from './support/terminal.ts'

const FILES = 5000
const OTHER_DISK = '/dev/shm'

onBothEngines('server create --adopt', (engine) => {
  let service: TestService
  let folder: string
  before(async () => {
    service = await startTestService({ engine })
    folder = mkdtempSync(join(tmpdir(), 'gamekeeper-adopt-'))
  })
  after(async () => {
    await service.stop()
    rmSync(folder, { recursive: true })
  })

  const env = () => ({
    GAMEKEEPER_DATA_DIR: service.dataDir,
    ...(service.databaseUrl ? { GAMEKEEPER_DATABASE_URL: service.databaseUrl } : {}),
  })
  const adopt = (dir: string, ...more: string[]) =>
    runPiped(['server', 'create', 'Old Castle', '--adopt', dir, ...more], env())
  const serversOf = async () => (await service.call('GET', '/servers')).body.data

  function makeFolder(name: string, files: number): string {
    const root = join(folder, name)
    mkdirSync(join(root, 'world/empty'), { recursive: true })
    for (let index = 0; index < files; index++) writeFileSync(join(root, `world/r.${index}.mca`), `region ${index}`)
    writeFileSync(join(root, 'start.sh'), '#!/bin/sh\n', { mode: 0o755 })
    chmodSync(join(root, 'world/r.0.mca'), 0o600)
    linkSync(join(root, 'world/r.0.mca'), join(root, 'world/second name'))
    symlinkSync('world', join(root, 'current'))
    symlinkSync('/etc/hostname', join(root, 'outside'))
    return root
  }

  test('it is moved into the data directory by one rename, with its modes, owners, times and links', async () => {
    const dir = makeFolder('minecraft', FILES)
    const [before, { ino }] = [snapshot(dir), lstatSync(dir)]
    await service.halt()
    const { code, stdout, stderr } = await adopt(dir, '--game', 'minecraft-java', '--port', '25565', '--json')
    assert.equal(code, 0, stderr)
    const made = JSON.parse(stdout)
    const files = join(service.dataDir, 'servers', made.id, 'files')
    assert.equal(existsSync(dir), false)
    assert.equal(lstatSync(files).ino, ino, 'it was moved and not copied')
    assertSameTree(snapshot(files), before)
    await service.restart()
    const server = (await service.call('GET', `/servers/${made.id}`)).body
    assert.deepEqual(
      [server.name, server.game, server.port, server.status],
      ['Old Castle', 'minecraft-java', 25565, 'ready'],
    )
    const usage = (await service.call('GET', `/files/${made.id}/usage`)).body
    assert.equal(usage.usedEntries >= FILES, true)
    const { data } = (await service.call('GET', `/files/${made.id}`)).body
    assert.ok(data.some(({ name }: { name: string }) => name === 'start.sh'))
    const [entry] = (await service.call('GET', `/servers/${made.id}/activity`)).body.data
    assert.equal(entry.event, 'server.created')
  })

  test('it is refused while the service runs, and nothing is touched', async () => {
    const dir = makeFolder('running', 1)
    const before = (await serversOf()).length
    const { code, stderr } = await adopt(dir)
    assert.equal(code, 2, stderr)
    assert.ok(existsSync(join(dir, 'world/r.0.mca')))
    assert.equal((await serversOf()).length, before)
  })

  test('what cannot be moved safely is refused with a sentence before a server is made', async () => {
    const before = (await serversOf()).length
    await service.halt()
    const dir = makeFolder('refused', 1)
    symlinkSync(dir, join(folder, 'link'))
    writeFileSync(join(folder, 'file'), '')
    for (const [path, sentence] of [
      [join(folder, 'nowhere'), /cannot be read \(ENOENT\)/],
      [join(folder, 'link'), /is a symbolic link/],
      [join(folder, 'file'), /is not a directory/],
      [service.dataDir, /lie within each other/],
      [join(service.dataDir, 'servers'), /lie within each other/],
      [tmpdir(), /lie within each other/],
      ['/proc', /something is mounted/],
    ] as const) {
      const { code, stderr } = await adopt(path)
      assert.equal(code, 1)
      assert.match(stderr, sentence)
    }
    const badPort = await adopt(dir, '--port', '99999')
    assert.deepEqual([badPort.code, /\/port/.test(badPort.stderr)], [1, true])
    if (existsSync(OTHER_DISK) && lstatSync(OTHER_DISK).dev !== lstatSync(folder).dev) {
      const elsewhere = mkdtempSync(join(OTHER_DISK, 'gamekeeper-adopt-'))
      const { stderr } = await adopt(elsewhere)
      assert.match(stderr, /different file systems.*files put --contents/)
      rmSync(elsewhere, { recursive: true })
    }
    assert.ok(existsSync(join(dir, 'world/r.0.mca')))
    await service.restart()
    assert.equal((await serversOf()).length, before)
  })

  test('a mistyped data directory does not become an instance', async () => {
    const dir = makeFolder('mistyped', 1)
    const { code, stderr } = await adopt(dir, '--data', join(folder, 'typo'))
    if (engine === 'sqlite') assert.match(stderr, /There is no Gamekeeper in/)
    assert.notEqual(code, 0)
    assert.equal(existsSync(join(folder, 'typo')), false)
  })

  test('only an empty directory is replaced', async () => {
    const { id } = await service.createServer({ name: 'Lived in' })
    const folders = layout(service.dataDir)
    writeFileSync(join(folders.server(id).files, 'level.dat'), 'years')
    const dir = makeFolder('late', 1)
    await assert.rejects(moveIntoServer(folders, id, dir), { code: 'ENOTEMPTY' })
    assert.deepEqual(readdirSync(folders.server(id).files), ['level.dat'])
    assert.ok(existsSync(dir))
  })
})

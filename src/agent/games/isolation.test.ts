// A game is a stranger's code: what it tries to read and to leave behind.
import assert from 'node:assert/strict'
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { putGame } from '../../../test/support/games.ts'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { DEFAULT_GAME_UIDS } from '../../contract/fixed-limits.ts'
import { layout as layoutOf } from '../layout.ts'
import { type GamesHarness, NO_LIMITS, openGames } from './games.testing.ts'
import { createUserIsolation } from './process/user-isolation.ts'

const S = 'srv_castle'
const isRoot = process.getuid?.() === 0

/** What a game finds that tries to read the given paths, and some more, on a machine where everything was left open to all. */
async function spyOn(harness: GamesHarness, more: readonly string[], seen: readonly string[] = []): Promise<string[]> {
  const { dataDir } = harness
  await harness.create(S, 'spy')
  await harness.create('srv_victim', 'plain')
  for (const name of ['gamekeeper.db', 'secret']) writeFileSync(join(dataDir, name), 'x', { mode: 0o666 })
  const victim = harness.filesOf('srv_victim')
  writeFileSync(join(victim, 'world.dat'), 'x', { mode: 0o666 })
  for (const folder of [dataDir, join(dataDir, 'servers'), join(victim, '..')]) chmodSync(folder, 0o777)
  const targets = [
    ...[dataDir, join(dataDir, 'gamekeeper.db'), join(dataDir, 'secret'), join(dataDir, 'servers')],
    ...[join(victim, '..'), victim, join(victim, 'world.dat'), join(harness.filesOf(S), '..', 'game')],
    ...[`/proc/${process.pid}/environ`, `/proc/${process.pid}/mem`, '/etc/shadow', ...more],
  ]
  writeFileSync(join(harness.filesOf(S), 'targets'), targets.map((path) => `${path}\n`).join(''))
  process.env.GAMEKEEPER_TEST_SECRET = 'x'
  await harness.power(S, 'start')
  delete process.env.GAMEKEEPER_TEST_SECRET
  await harness.reach(S, 'running')
  const lines = await harness.linesOf(S)
  const bad = lines.filter((line) => /^(?:READ|SEEN|LEAKED|WROTE)/.test(line))
  assert.deepEqual(
    bad,
    seen.map((path) => `SEEN ${path}`),
  )
  assert.equal(lines.filter((line) => line.startsWith('kept from')).length, targets.length)
  return lines
}

suite('isolation by a user of its own', () => {
  test('database, secret, backups and other servers are closed to it, and so are the service’s memory and environment', async (context) => {
    if (!isRoot) return context.skip('only root gives games users of their own')
    await using harness = await openGames({ hasBubblewrap: false })
    // Files that have these names are there: that is all it learns.
    const seen = ['gamekeeper.db', 'secret'].map((name) => join(harness.dataDir, name))
    const service = ['environ', 'mem'].map((name) => `/proc/${process.pid}/${name}`)
    const lines = await spyOn(harness, ['/root'], [...seen, ...service, '/etc/shadow'])
    const { runtime } = await harness.games.read({ serverId: S })
    assert.deepEqual([runtime?.isolation, runtime?.user], ['user', lstatSync(harness.filesOf(S)).uid])
    assert.match(lines.find((line) => line.startsWith('groups of')) ?? '', /capabilities 0{16} 0{16}/)
    await harness.power(S, 'kill')
    await harness.reach(S, 'stopped')
    // What the API makes afterwards is closed to it as well.
    await harness.create('srv_later', 'plain')
    assert.equal(lstatSync(join(harness.filesOf('srv_later'), '..')).mode & 0o077, 0)
  })

  test('such a game finds its own files by whatever path, and nothing that it has started outlives it', async (context) => {
    if (!isRoot) return context.skip('only root gives games users of their own')
    await using harness = await openGames({ hasBubblewrap: false, autoRestart: false })
    await harness.create(S, 'plain')
    const argv = ['/bin/sh', '-c', 'cd "$HOME" && ls "$PWD/start" && exec ./start'] as const
    await harness.power(S, 'start', { argv })
    await harness.reach(S, 'running')
    assert.ok((await harness.linesOf(S)).includes(`${harness.filesOf(S)}/start`))
    await harness.power(S, 'stop')
    await harness.reach(S, 'stopped')
    assert.equal((await harness.games.read({ serverId: S })).power.exit?.reason, 'requested')

    putGame(harness.filesOf(S), 'forking')
    await harness.power(S, 'start', {}, { ...NO_LIMITS, processes: 50 })
    await harness.reach(S, 'running')
    const { uid } = lstatSync(harness.filesOf(S))
    await until(async () => processesOf(uid).length > 10)
    await harness.power(S, 'kill')
    await harness.reach(S, 'stopped')
    await until(async () => processesOf(uid).length === 0)
  })

  test('where games could not reach their files, and without root, isolation is missing and says why', async () => {
    const layout = layoutOf('/proc/1/fd/data')
    const whyNot = createUserIsolation(layout).whyNot()
    assert.equal(
      whyNot,
      isRoot ? '/proc/1/fd is closed to other users, so games could not reach their files' : 'the service is not root',
    )
  })
})

/** Those that have not ended. */
function processesOf(uid: number): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      return (
        /^\d+$/.test(name) &&
        new RegExp(`^State:\\s+[^ZX].*^Uid:\\s+${uid}\\b`, 'ms').test(readFileSync(`/proc/${name}/status`, 'latin1'))
      )
    } catch {
      return false
    }
  })
}

suite('isolation', needs('bubblewrap'), () => {
  test('a game that tries to read the database, the secret, another server and the service gets nothing', async () => {
    await using harness = await openGames()
    const lines = await spyOn(harness, ['/etc/gamekeeper', '/root', '/home'])
    const names = lines.filter((line) => line.startsWith('env ')).map((line) => line.slice(4).split('=')[0])
    assert.deepEqual(
      names.filter((name) => name !== 'PWD' && name !== '_' && name !== 'OLDPWD' && name !== 'SHLVL'),
      [...['HOME', 'LANG', 'PATH', 'TERM']],
    )
    assert.ok(lines.includes('own tmp'))
    assert.match(lines.find((line) => line.startsWith('groups of')) ?? '', /capabilities 0{16} 0{16}/)
    if (isRoot)
      assert.match(lines.find((line) => line.startsWith('id ')) ?? '', /^id 19000\d{5} 19000\d{5} 19000\d{5}$/)
  })

  test('as root, each server has a user of its own, who owns its files, and no symlink gives it more', async (context) => {
    if (!isRoot) return context.skip('only root gives files away')
    await using harness = await openGames()
    const outside = join(harness.dataDir, 'outside')
    mkdirSync(outside)
    writeFileSync(join(outside, 'file'), 'x')
    for (const serverId of [S, 'srv_other']) {
      await harness.create(serverId, 'plain')
      const files = harness.filesOf(serverId)
      mkdirSync(join(files, 'world'))
      writeFileSync(join(files, 'world', 'level.dat'), 'x')
      symlinkSync(outside, join(files, 'link'))
      await harness.power(serverId, 'start')
      await harness.reach(serverId, 'running')
    }
    const ownerOf = (path: string) => lstatSync(path).uid
    const owners = [S, 'srv_other'].map((serverId) => {
      const files = harness.filesOf(serverId)
      const all = ['.', 'start', 'world', 'world/level.dat', 'link'].map((name) => ownerOf(join(files, name)))
      assert.equal(new Set(all).size, 1, `all of ${serverId} belongs to one user`)
      return all[0] as number
    })
    assert.equal(new Set(owners).size, 2)
    assert.ok(owners.every((uid) => uid >= DEFAULT_GAME_UIDS.first && uid <= DEFAULT_GAME_UIDS.last))
    assert.deepEqual([ownerOf(outside), ownerOf(join(outside, 'file'))], [0, 0])
    await harness.power(S, 'stop')
    await harness.reach(S, 'stopped')
    assert.equal(ownerOf(join(harness.filesOf(S), 'world.txt')), owners[0], 'it could write as itself')
  })

  test('binary rubbish, endless lines and a last line without its end are shown as they can be', async () => {
    await using harness = await openGames()
    await harness.create(S, 'rubbish')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    await harness.games.sendCommand({ serverId: S, command: 'go' })
    await until(async () => (await harness.games.read({ serverId: S })).power.state === 'stopped')
    const lines = (await harness.linesOf(S)).slice(1)
    assert.deepEqual(lines, [
      'bad \ufffd\ufffd bytes \u0000 here',
      '\u001b[31mred\u001b[0m',
      'y'.repeat(16 * 1024),
      'Done (0.1s)!',
      'go',
      'no end',
      'Ended with exit code 0.',
    ])
  })
})

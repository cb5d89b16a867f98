// A game is a stranger's code: what it tries to read and to leave behind.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { launchOf, putGame } from '../../../test/support/games.ts'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { isFailure } from '../../contract/errors.ts'
import { DEFAULT_GAME_UIDS } from '../../contract/fixed-limits.ts'
import { layout as layoutOf } from '../layout.ts'
import { type GamesHarness, NO_LIMITS, openGames } from './games.testing.ts'
import { findBubblewrap, wrap } from './process/isolation.ts'
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

  test('a game without a limit of its own may have 1,024 processes, also where the service may make no group', (context) => {
    if (!isRoot) return context.skip('only root gives games users of their own')
    const user = { uid: DEFAULT_GAME_UIDS.last, gid: DEFAULT_GAME_UIDS.last }
    const argv = ['sed', '-n', 's/^Max processes *//p', '/proc/self/limits'] as const
    const groups = { isolation: { kind: 'user' }, controllers: new Set<never>(), hidden: [] } as const
    const { command, runtime } = wrap({
      launch: launchOf({ argv }),
      filesFolder: '/',
      limits: NO_LIMITS,
      user,
      ...groups,
    })
    assert.equal(runtime.enforced?.processes, 'rlimit')
    // Its environment would be on the last one.
    const stdio = ['ignore', 'pipe', 'inherit', 'ignore'] as const
    const { stdout } = spawnSync(command.file, command.args, { cwd: '/', env: {}, stdio: [...stdio] })
    assert.match(String(stdout), /^1024 +1024 /)
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

suite('the environment of a game', needs('bubblewrap'), () => {
  async function startAmongStrangers(hasBubblewrap: boolean): Promise<void> {
    await using harness = await openGames({ hasBubblewrap, autoRestart: false })
    await harness.create(S, 'plain')
    const files = harness.filesOf(S)
    const script = '#!/bin/sh\necho "is $VALUE in $LD_LIBRARY_PATH"\necho "Done ("\nread -r line\n'
    writeFileSync(join(files, 'start'), script)
    // What bubblewrap, setpriv and prlimit load: each would fail, or run it, if a template could say where they look.
    mkdirSync(join(files, 'lib'))
    for (const library of ['libcap.so.2', 'libcap-ng.so.0', 'libselinux.so.1', 'libsmartcols.so.1'])
      writeFileSync(join(files, 'lib', library), 'a library of a stranger')
    const environment = { LD_LIBRARY_PATH: `${files}/lib:/server/lib`, VALUE: `Áé "x" $(id) \\ \`id\` '` }
    await harness.power(S, 'start', { environment })
    await harness.reach(S, 'running')
    assert.ok((await harness.linesOf(S)).includes(`is ${environment.VALUE} in ${environment.LD_LIBRARY_PATH}`))
    await harness.power(S, 'kill')
    await harness.reach(S, 'stopped')
    const refused = [
      ['LD_PRELOAD', '/server/x.so'],
      ['GLIBC_TUNABLES', 'x'],
      ['A', 'b\nLD_PRELOAD=x'],
    ]
    for (const [name = '', value = ''] of refused)
      await assert.rejects(harness.power(S, 'start', { environment: { [name]: value } }), (error) =>
        isFailure(error, 'not_startable'),
      )
  }

  test("is the game's alone, and nothing that starts it has any of it", async () => {
    await startAmongStrangers(true)
    if (isRoot) await startAmongStrangers(false)
  })
})

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

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

  test('what the service keeps is hidden also where it is in a part of the system that games see', async (context) => {
    const parent = ['/opt', '/usr/local'].find(isWritable)
    if (!parent) return context.skip('nothing that games see can be written here')
    const keys = mkdtempSync(join(parent, 'gamekeeper-keys-'))
    using _keys = { [Symbol.dispose]: () => rmSync(keys, { recursive: true }) }
    chmodSync(keys, 0o755)
    const keyFile = join(keys, 'tls.key')
    writeFileSync(keyFile, 'x', { mode: 0o644 })
    // By a link, as an operator may have named it.
    symlinkSync(keyFile, join(keys, 'link'))
    await using harness = await openGames({ parent, options: { keyFiles: [join(keys, 'link')] } })
    // In /usr, which is the system's, the file alone is hidden.
    await spyOn(harness, [keyFile], parent === '/opt' ? [] : [keyFile])
    const { runtime } = await harness.games.read({ serverId: S })
    assert.equal(runtime?.isolation, 'bubblewrap')
  })

  test('bubblewrap is looked for again at the next start, and one that could not be tried isolates no less', async () => {
    let isInstalled = false
    const look = async () => (isInstalled ? findBubblewrap() : null)
    await using harness = await openGames({ findBubblewrap: look, options: { allowUnisolated: true } })
    await harness.create(S, 'plain')
    const isolationOf = async () => {
      await harness.power(S, 'start')
      await harness.reach(S, 'running')
      const { runtime } = await harness.games.read({ serverId: S })
      await harness.power(S, 'kill')
      await harness.reach(S, 'stopped')
      return runtime?.isolation
    }
    assert.equal(await isolationOf(), isRoot ? 'user' : 'none')
    isInstalled = true
    assert.equal(await isolationOf(), 'bubblewrap')

    assert.equal(await findBubblewrap(['--no-such-option']), null)
    // As the kernel says where there are too many namespaces.
    await assert.rejects(findBubblewrap(['--bind', '/No space left on device', '/x']), (error) =>
      isFailure(error, 'isolation_missing'),
    )
    // More than a command line holds: it is not even started.
    await assert.rejects(findBubblewrap(['x'.repeat(4_000_000)]), (error) => isFailure(error, 'isolation_missing'))
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
})

// What a template asks for among the files, before a start.
import assert from 'node:assert/strict'
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needs } from '../../../test/support/needs.ts'
import { isFailure } from '../../contract/errors.ts'
import type { LaunchConfigFile } from '../../contract/games/launch.ts'
import { type GamesHarness, openGames } from './games.testing.ts'

const S = 'srv_castle'
const PROPERTIES: LaunchConfigFile = {
  path: '/server.properties',
  format: 'properties',
  settings: [{ key: ['server-port'], value: 25565 }],
}

async function refused(harness: GamesHarness, change: Parameters<GamesHarness['power']>[2], what: RegExp) {
  await assert.rejects(harness.power(S, 'start', change), (error) => {
    assert.ok(isFailure(error, 'not_startable'), String(error))
    assert.match(error.detail, what)
    return true
  })
  assert.equal((await harness.games.read({ serverId: S })).power.state, 'stopped')
  assert.deepEqual(await harness.linesOf(S), [])
}

async function runOnce(harness: GamesHarness, change: Parameters<GamesHarness['power']>[2]): Promise<void> {
  await harness.power(S, 'start', change)
  await harness.reach(S, 'running')
  await harness.power(S, 'stop')
  await harness.reach(S, 'stopped')
}

suite('the files of a game before a start', needs('bubblewrap'), () => {
  test('config files are filled in before each start: what is not named stays, and what is right is not written', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const path = join(harness.filesOf(S), 'server.properties')
    writeFileSync(path, '# mine\nmotd=hello\nserver-port=1\n')
    const text: LaunchConfigFile = { ...PROPERTIES, path: '/absent.txt', format: 'text' }
    const made: LaunchConfigFile = { path: '/new/ops.json', format: 'json', settings: [{ key: ['a'], value: true }] }
    const change = { configFiles: [PROPERTIES, text, made] }
    await runOnce(harness, change)
    assert.equal(readFileSync(path, 'utf8'), '# mine\nmotd=hello\nserver-port=25565\n')
    assert.deepEqual(JSON.parse(readFileSync(join(harness.filesOf(S), 'new/ops.json'), 'utf8')), { a: true })
    assert.throws(() => statSync(join(harness.filesOf(S), 'absent.txt')))
    const before = statSync(path).ino
    await runOnce(harness, change)
    assert.equal(statSync(path).ino, before)
    writeFileSync(path, 'server-port=2\n')
    await runOnce(harness, change)
    assert.equal(readFileSync(path, 'utf8'), 'server-port=25565\n')
  })

  test('one that cannot be filled in keeps the game from starting, and is left as it is', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const path = join(harness.filesOf(S), 'server.properties')
    const json: LaunchConfigFile = { ...PROPERTIES, format: 'json' }
    writeFileSync(path, '{ "a": ')
    await refused(harness, { configFiles: [json] }, /\/server\.properties cannot be filled in/)
    assert.equal(readFileSync(path, 'utf8'), '{ "a": ')
    writeFileSync(path, Buffer.from([0xff, 0xfe, 0x00]))
    await refused(harness, { configFiles: [PROPERTIES] }, /not UTF-8/)
    writeFileSync(path, Buffer.alloc(2 * 1024 * 1024, '#'))
    await refused(harness, { configFiles: [PROPERTIES] }, /larger than/)
  })

  test('a link in the place of a config file leads nowhere', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const outside = join(harness.dataDir, 'outside.properties')
    writeFileSync(outside, 'server-port=1\n')
    symlinkSync(outside, join(harness.filesOf(S), 'server.properties'))
    await assert.rejects(harness.power(S, 'start', { configFiles: [PROPERTIES] }), (error) => isFailure(error))
    assert.equal(readFileSync(outside, 'utf8'), 'server-port=1\n')
  })

  test('what a template requires and is not there is named, with what to do', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const hint = 'Do this.'
    await refused(
      harness,
      { requires: [{ kind: 'file', path: '/server.jar', hint }] },
      /\/server\.jar is missing\. Do this/,
    )
    await refused(
      harness,
      { requires: [{ kind: 'program', program: 'no-such-game', hint }] },
      /not installed.* Do this/,
    )
    await refused(harness, { requires: [{ kind: 'java', version: 999, hint }] }, /Java.* Do this/)
    const eula = { kind: 'line' as const, path: '/eula.txt', line: 'eula=true', hint }
    await refused(harness, { requires: [eula] }, /\/eula\.txt does not have the line eula=true\. Do this/)
    writeFileSync(join(harness.filesOf(S), 'eula.txt'), '#eula=true\neula=false\n')
    await refused(harness, { requires: [eula] }, /eula=true/)
    writeFileSync(join(harness.filesOf(S), 'eula.txt'), '# read\r\neula=true\r\n')
    await runOnce(harness, { requires: [eula] })
  })
})

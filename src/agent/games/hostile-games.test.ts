// Games that want to harm the machine, or do not care: the state that is shown is true, and other games go on.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { freePort } from '../../../test/support/free-port.ts'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { isFailure } from '../../contract/errors.ts'
import { DISK_LOOKS } from '../../contract/fixed-limits.ts'
import { withoutRoot } from '../files/trees.testing.ts'
import { createManualTimers, type GamesHarness, openGames } from './games.testing.ts'

const S = 'srv_castle'
const OTHER = 'srv_other'
const MIB = 1024 * 1024

async function startGame(harness: GamesHarness, serverId: string, game: Parameters<GamesHarness['create']>[1]) {
  await harness.create(serverId, game)
  await harness.power(serverId, 'start')
  await harness.reach(serverId, 'running')
}

/** Obeys its console, and stops by it. */
async function isWell(harness: GamesHarness, serverId: string): Promise<void> {
  await harness.games.sendCommand({ serverId, command: 'still there?' })
  await until(async () => (await harness.linesOf(serverId)).includes('You said: still there?'))
}

const powerOf = async (harness: GamesHarness, serverId = S) => (await harness.games.read({ serverId })).power

suite('hostile games', needs('bubblewrap'), () => {
  test('a game that writes past the disk quota of its server is stopped, with the reason, and starts again once there is room', async () => {
    const timers = createManualTimers()
    await using harness = await openGames({ timers })
    await startGame(harness, S, 'filling')
    await startGame(harness, OTHER, 'plain')
    await harness.setQuota(S, 4 * MIB)
    await harness.games.sendCommand({ serverId: S, command: '2' })
    await until(async () => (await harness.linesOf(S)).includes('filled'))
    // Before it had a quota it was looked at less often.
    timers.advance(DISK_LOOKS.unlimitedMs)
    await until(async () => timers.pendingMs().includes(DISK_LOOKS.limitedMs))
    assert.equal((await powerOf(harness)).state, 'running', 'it is within its quota')

    await harness.games.sendCommand({ serverId: S, command: '8' })
    await until(async () => (await harness.linesOf(S)).filter((line) => line === 'filled').length === 2)
    timers.advance(DISK_LOOKS.limitedMs)
    await harness.reach(S, 'stopped')
    assert.deepEqual((await powerOf(harness)).exit?.reason, 'requested', 'it could save')
    const over = harness.facts.find(({ kind }) => kind === 'game.over_quota')
    assert.equal(over?.properties.quotaBytes, 4 * MIB)
    assert.ok(Number(over?.properties.filesBytes) > 10 * MIB)

    await assert.rejects(harness.power(S, 'start'), (error) => isFailure(error, 'quota_exceeded'))
    assert.equal((await powerOf(harness)).state, 'stopped')
    rmSync(join(harness.filesOf(S), 'big'))
    await until(() => harness.power(S, 'start').catch(() => false))
    await isWell(harness, OTHER)
  })

  test('a game that fills the disk is shown as it is, can be stopped, and harms no other game', {
    skip: withoutRoot(),
  }, async () => {
    const disk = mkdtempSync(join(tmpdir(), 'gamekeeper-disk-'))
    using _disk = { [Symbol.dispose]: () => rmSync(disk, { recursive: true }) }
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m,mode=0755', 'tmpfs', disk])
    // Supervisors of games that have ended are in it for a moment longer.
    using _mounted = { [Symbol.dispose]: () => execFileSync('umount', ['--lazy', disk]) }
    await using harness = await openGames({ parent: disk })
    await startGame(harness, S, 'filling')
    await startGame(harness, OTHER, 'plain')
    await harness.games.sendCommand({ serverId: S, command: '64' })
    await until(
      async () => (lstatSync(join(harness.filesOf(S), 'big'), { throwIfNoEntry: false })?.size ?? 0) > 24 * MIB,
    )
    assert.deepEqual([(await powerOf(harness)).state, (await powerOf(harness, OTHER)).state], ['running', 'running'])
    await harness.power(S, 'stop')
    await harness.reach(S, 'stopped')
    await assert.rejects(harness.power(S, 'start'), (error) => isFailure(error, 'disk_full'))
    assert.equal((await powerOf(harness)).state, 'stopped')
    rmSync(join(harness.filesOf(S), 'big'))
    await isWell(harness, OTHER)
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
  })

  test('a game that puts links to the outside in the place of its files gains nothing by them', async () => {
    await using harness = await openGames({ autoRestart: false })
    const outside = join(harness.dataDir, 'outside')
    mkdirSync(outside)
    for (const name of ['secret', 'program']) writeFileSync(join(outside, name), name, { mode: 0o755 })
    await harness.create(S, 'linking')
    writeFileSync(join(harness.filesOf(S), 'outside'), outside)
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    await harness.games.sendCommand({ serverId: S, command: 'go' })
    await harness.reach(S, 'stopped')
    assert.ok(lstatSync(join(harness.filesOf(S), 'start')).isSymbolicLink())

    const settings = [{ key: ['motd'], value: 'mine' }]
    const configFiles = [{ path: '/server.properties', format: 'properties' as const, settings }]
    for (const change of [{ configFiles, argv: ['/bin/cat'] as const }, { workingDirectory: '/world' }]) {
      await assert.rejects(harness.power(S, 'start', change), (error) => isFailure(error), JSON.stringify(change))
      assert.equal((await powerOf(harness)).state, 'stopped')
    }
    // What the link leads to is not there for it.
    await harness.power(S, 'start')
    await harness.reach(S, 'crashed')
    const owners = ['.', 'secret', 'program'].map((name) => lstatSync(join(outside, name)).uid)
    assert.deepEqual(new Set(owners), new Set([process.getuid?.()]), 'nothing outside was given to the game')
    assert.equal(readFileSync(join(outside, 'secret'), 'utf8'), 'secret')
  })

  for (const hasBubblewrap of [true, false])
    test(`whoever a game leaves behind to hold its port goes with it, ${hasBubblewrap ? 'in bubblewrap' : 'without'}`, {
      skip: !hasBubblewrap && process.getuid?.() !== 0 && 'only root gives games users of their own',
    }, async () => {
      await using harness = await openGames({ hasBubblewrap, autoRestart: false })
      const port = await freePort()
      await harness.create(S, 'holding')
      writeFileSync(join(harness.filesOf(S), 'port'), `${port}\n`)
      const launch = { ports: [{ name: 'game', port, protocol: 'tcp' as const }] }
      const start = () =>
        harness.power(S, 'start', launch).catch((error) => {
          throw new Error(`${error.message}\n${execFileSync('ss', ['-tanp', 'sport', '=', String(port)])}`)
        })
      for (let time = 1; time <= 2; time++) {
        await start()
        await harness.reach(S, 'running')
        await harness.games.sendCommand({ serverId: S, command: 'go' })
        await harness.reach(S, 'crashed')
        assert.equal((await powerOf(harness)).exit?.code, 3)
      }
      await start()
      await harness.reach(S, 'running')
    })
})

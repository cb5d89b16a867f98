// Power, with real games and a clock that the test moves.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needs } from '../../../../test/support/needs.ts'
import { until } from '../../../../test/support/until.ts'
import { isFailure } from '../../../contract/errors.ts'
import { CRASH_RESTARTS } from '../../../contract/fixed-limits.ts'
import { createManualTimers, NO_LIMITS, openGames } from '../games.testing.ts'
import type { RunRecord } from '../supervisor/protocol.ts'
import { restartDelayMs } from './exits.ts'

const S = 'srv_castle'
function groupsOf(gameFolder: string): string[] {
  const name = readdirSync(gameFolder).find((entry) => /^run-.*\.json$/.test(entry)) ?? ''
  const { cgroups } = JSON.parse(readFileSync(join(gameFolder, name), 'utf8')) as RunRecord
  return cgroups.map(({ folder }) => folder)
}

const kinds = (facts: { kind: string }[]) => facts.map(({ kind }) => kind)

suite('power', needs('bubblewrap'), () => {
  test('a game is started, comes up, obeys its console and stops the way its template says', async () => {
    await using harness = await openGames()
    const { games, facts } = harness
    await harness.create(S, 'plain')
    assert.equal(await harness.power(S, 'start'), true)
    await harness.reach(S, 'running')
    assert.equal(await harness.power(S, 'start'), false, 'it runs already')
    await games.sendCommand({ serverId: S, command: 'hello' })
    await until(async () => (await harness.linesOf(S)).includes('You said: hello'))
    assert.equal(await harness.power(S, 'stop'), true)
    assert.deepEqual((await games.read({ serverId: S })).power.step, 'waiting for the world to save')
    await harness.reach(S, 'stopped')
    const { power } = await games.read({ serverId: S })
    assert.deepEqual([power.exit?.reason, power.exit?.code, power.exit?.signal], ['requested', 0, null])
    assert.ok(existsSync(join(harness.filesOf(S), 'world.txt')), 'it could save')
    assert.equal(await harness.power(S, 'stop'), false)
    assert.deepEqual(kinds(facts), [
      ...['power.requested', 'game.running', 'console.command_sent', 'power.requested', 'game.stopped'],
    ])
    await assert.rejects(games.sendCommand({ serverId: S, command: 'x' }), (e) => isFailure(e, 'server_not_running'))
    assert.deepEqual(harness.errors, [])
  })

  test('a game that was told to stop from inside has not crashed', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    await harness.games.sendCommand({ serverId: S, command: 'quit' })
    await harness.reach(S, 'stopped')
    assert.equal((await harness.games.read({ serverId: S })).power.exit?.reason, 'in_game')
  })

  test('A crash is restarted after 1 s, then twice as long each time up to 5 min, and given up in the end', async () => {
    const timers = createManualTimers()
    await using harness = await openGames({ timers })
    await harness.create(S, 'plain')
    const crash = { argv: ['/bin/false'] as [string] }
    await harness.power(S, 'start', crash)
    const expected = [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, undefined]
    assert.deepEqual(
      expected.map((_, restarts) => restartDelayMs(restarts)),
      expected,
    )
    const nextDelay = async () => {
      await until(async () => timers.pendingMs().length > 0)
      return timers.pendingMs()[0] as number
    }
    for (const delayMs of expected.slice(0, 3)) {
      assert.equal(await nextDelay(), delayMs)
      const { power } = await harness.games.read({ serverId: S })
      assert.deepEqual([power.state, power.exit?.reason, power.exit?.code], ['crashed', 'crashed', 1])
      timers.advance(await nextDelay())
    }
    await nextDelay()
    // As it is before the last of them.
    harness.edit(S, (record) => ({ ...record, restarts: CRASH_RESTARTS.count }))
    await harness.restart()
    timers.advance(await nextDelay())
    const crashes = () => kinds(harness.facts).filter((kind) => kind === 'game.crashed').length
    await until(async () => crashes() === 5)
    await until(async () => !harness.games.isRunning(S))
    assert.deepEqual(timers.pendingMs(), [], 'it is given up')
  })

  test('After 10 healthy minutes a crash counts as the first one again', async () => {
    const timers = createManualTimers()
    await using harness = await openGames({ timers })
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    for (const expected of [1000, 2000]) {
      await harness.reach(S, 'running')
      await harness.games.sendCommand({ serverId: S, command: 'crash' })
      await harness.reach(S, 'crashed')
      assert.deepEqual(timers.pendingMs(), [expected])
      timers.advance(expected)
    }
    await harness.reach(S, 'running')
    timers.advance(CRASH_RESTARTS.healthyMs)
    await harness.games.sendCommand({ serverId: S, command: 'crash' })
    await harness.reach(S, 'crashed')
    assert.deepEqual(timers.pendingMs(), [1000])
    assert.equal(await harness.power(S, 'stop'), true, 'a stop takes the next start back')
    assert.deepEqual([timers.pendingMs(), (await harness.games.read({ serverId: S })).power.state], [[], 'stopped'])
  })

  test('a game that ignores its stop is killed at the end of the ladder, and that is said', async () => {
    await using harness = await openGames()
    await harness.create(S, 'stubborn')
    const stop = [
      { command: 'stop', timeoutSeconds: 0.05, message: null },
      { signal: 'SIGTERM' as const, timeoutSeconds: 0.05, message: null },
    ]
    await harness.power(S, 'start', { stop })
    await harness.reach(S, 'running')
    await harness.power(S, 'stop')
    await harness.reach(S, 'stopped')
    const { exit } = (await harness.games.read({ serverId: S })).power
    assert.deepEqual([exit?.reason, exit?.signal], ['killed', 'SIGKILL'])
  })

  test('kill works whatever else is under way, also while a stop hangs', async () => {
    await using harness = await openGames()
    await harness.create(S, 'stubborn')
    await harness.power(S, 'start', { stop: [{ command: 'stop', timeoutSeconds: 3600, message: null }] })
    await harness.reach(S, 'running')
    await harness.power(S, 'stop')
    assert.equal((await harness.games.read({ serverId: S })).power.state, 'stopping')
    assert.equal(await harness.power(S, 'kill'), true)
    await harness.reach(S, 'stopped')
    assert.equal((await harness.games.read({ serverId: S })).power.exit?.reason, 'killed')
    assert.equal(await harness.power(S, 'kill'), false)
  })

  test('restart stops it, then starts it; a start while it stops is refused', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    await Promise.all([
      harness.power(S, 'restart'),
      assert.rejects(harness.power(S, 'start'), (error) => isFailure(error, 'server_busy')),
    ])
    await until(async () => (await harness.linesOf(S)).filter((line) => line === 'Started.').length === 2)
    await harness.reach(S, 'running')
    assert.equal((await harness.games.read({ serverId: S })).power.exit?.reason, 'requested')
  })

  test('a restore and a start exclude each other, whichever comes first', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    {
      using _restore = await harness.lockOf(S).exclude()
      await assert.rejects(harness.power(S, 'start'), (error) => isFailure(error, 'server_busy'))
      harness.games.requireStopped(S)
    }
    const starting = harness.power(S, 'start')
    await until(async () => harness.games.isRunning(S))
    using _restore = await harness.lockOf(S).exclude()
    assert.throws(
      () => harness.games.requireStopped(S),
      (error) => isFailure(error, 'server_running'),
    )
    assert.equal(await starting, true)
  })

  test('a kill ends a start that is under way, and whoever waits for the end of it is told', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const starting = harness.power(S, 'start')
    await until(async () => harness.games.isRunning(S))
    await harness.games.end(S)
    await starting
    assert.deepEqual(
      [(await harness.games.read({ serverId: S })).power.state, harness.games.isRunning(S)],
      ['stopped', false],
    )
  })

  test('ten starts at once start one game', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const answers = await Promise.all(Array.from({ length: 10 }, () => harness.power(S, 'start')))
    assert.equal(answers.filter(Boolean).length, 1)
    await harness.reach(S, 'running')
    assert.equal((await harness.linesOf(S)).filter((line) => line === 'Started.').length, 1)
  })

  test('what uses more memory than it may is out of memory, not crashed', async (context) => {
    await using harness = await openGames({ autoRestart: false })
    await harness.create(S, 'hungry')
    await harness.power(S, 'start', {}, { ...NO_LIMITS, memoryBytes: 64 * 1024 * 1024 })
    if ((await harness.games.read({ serverId: S })).runtime?.enforced.memory !== 'cgroup')
      return context.skip('no control group can be made here')
    await harness.reach(S, 'crashed')
    assert.equal((await harness.games.read({ serverId: S })).power.exit?.reason, 'out_of_memory')
  })

  test('a game that forks without end is held to its processes, and ends with all of them', async (context) => {
    await using harness = await openGames()
    await harness.create(S, 'forking')
    await harness.power(S, 'start', {}, { ...NO_LIMITS, processes: 40 })
    if ((await harness.games.read({ serverId: S })).runtime?.enforced.processes !== 'cgroup')
      return context.skip('no control group can be made here')
    await until(async () => (await harness.linesOf(S)).includes('no more'))
    const groups = groupsOf(join(harness.filesOf(S), '..', 'game'))
    assert.ok(groups.length > 0 && groups.every((folder) => existsSync(folder)))
    await harness.power(S, 'kill')
    await harness.reach(S, 'stopped')
    await until(async () => !groups.some((folder) => existsSync(folder)))
    await harness.create('srv_other', 'plain')
    await harness.power('srv_other', 'start')
    await harness.reach('srv_other', 'running')
  })
})

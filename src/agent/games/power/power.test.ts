// Power, with real games and a clock that the test moves.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as afterOthers } from 'node:timers/promises'
import { needs } from '../../../../test/support/needs.ts'
import { until } from '../../../../test/support/until.ts'
import { isFailure } from '../../../contract/errors.ts'
import { CRASH_RESTARTS } from '../../../contract/fixed-limits.ts'
import type { PowerState } from '../../../contract/games/power.ts'
import { createManualTimers, openGames } from '../games.testing.ts'
import { restartDelayMs } from './exits.ts'

const S = 'srv_castle'

const kinds = (facts: { kind: string }[]) => facts.map(({ kind }) => kind)

suite('power', needs('bubblewrap'), () => {
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

  test('a restart that meets a restore waits for it, and is not given up by that', async () => {
    const timers = createManualTimers()
    await using harness = await openGames({ timers })
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    await harness.games.sendCommand({ serverId: S, command: 'crash' })
    await harness.reach(S, 'crashed')
    const scheduled = () => until(async () => timers.pendingMs()[0] !== undefined)
    {
      using _restore = await harness.lockOf(S).exclude()
      for (let time = 1; time <= CRASH_RESTARTS.count + 2; time++) {
        await scheduled()
        assert.deepEqual(timers.pendingMs(), [1000])
        timers.advance(1000)
      }
      await scheduled()
    }
    timers.advance(1000)
    await harness.reach(S, 'running')
    await harness.games.sendCommand({ serverId: S, command: 'crash' })
    await harness.reach(S, 'crashed')
    assert.deepEqual(timers.pendingMs(), [2000], 'it is the second crash')
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

  test('Between the stop and the start of a restart it is `starting`, not `stopped`.', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    const { since } = (await harness.games.read({ serverId: S })).power
    await harness.power(S, 'restart')
    const seen = new Set<PowerState>()
    for (;;) {
      const { power } = await harness.games.read({ serverId: S })
      seen.add(power.state)
      if (power.state === 'running' && power.since !== since) break
      await afterOthers()
    }
    assert.deepEqual([...seen], ['stopping', 'starting', 'running'])
  })

  test('a run is stopped the way that it was started with, whatever a start that comes meanwhile says', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    const stop = [{ signal: 'SIGQUIT' as const, timeoutSeconds: 20, message: 'waiting for something else' }]
    assert.equal(await harness.power(S, 'start', { stop }), false)
    await harness.restart()
    await harness.power(S, 'stop')
    assert.equal((await harness.games.read({ serverId: S })).power.step, 'waiting for the world to save')
    await harness.reach(S, 'stopped')
    const { exit } = (await harness.games.read({ serverId: S })).power
    assert.deepEqual([exit?.code, exit?.signal], [0, null])
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

  test('a kill that comes while a start or an end is being recorded is not undone', async () => {
    const timers = createManualTimers()
    let killAt = 'power.requested'
    await using harness = await openGames({
      timers,
      onFact: ({ kind, properties }, { power }) =>
        kind === killAt && properties.action !== 'kill' ? power(S, 'kill') : undefined,
    })
    await harness.create(S, 'plain')
    const isStoppedForGood = async () => {
      await until(async () => !harness.games.isRunning(S))
      const { power } = await harness.games.read({ serverId: S })
      assert.deepEqual([power.state, timers.pendingMs()], ['stopped', []])
    }
    await harness.power(S, 'start')
    await isStoppedForGood()
    killAt = 'game.crashed'
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    await harness.games.sendCommand({ serverId: S, command: 'crash' })
    await isStoppedForGood()
    killAt = 'game.stopped'
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    await harness.power(S, 'restart')
    await isStoppedForGood()
  })

  test('ten starts at once start one game', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const answers = await Promise.all(Array.from({ length: 10 }, () => harness.power(S, 'start')))
    assert.equal(answers.filter(Boolean).length, 1)
    await harness.reach(S, 'running')
    assert.equal((await harness.linesOf(S)).filter((line) => line === 'Started.').length, 1)
  })
})

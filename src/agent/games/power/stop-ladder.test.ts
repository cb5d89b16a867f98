// Ends that do not go as they should: a game that does not hear, a step that hangs, a kill that nobody takes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { until } from '../../../../test/support/until.ts'
import type { StopStep } from '../../../contract/games/launch.ts'
import { createManualTimers, openGames } from '../games.testing.ts'
import type { GameRuntime, Run, RunEvents } from '../runtime.ts'
import { descend } from './stop-ladder.ts'

const S = 'srv_castle'
const STOP: StopStep = { command: 'stop', timeoutSeconds: 120, message: null }
const TERM: StopStep = { signal: 'SIGTERM', timeoutSeconds: 10, message: null }

/** One that does as the test says. */
function scriptedRun(change: Partial<Run>): Run & { said: string[] } {
  const said: string[] = []
  return {
    ...{ runId: 'run_1', said, isReady: () => true, tail: () => 0, usage: async () => ({}) as never, detach() {} },
    async input(line) {
      said.push(line)
      return null
    },
    async signal(signal) {
      said.push(signal)
    },
    async kill() {
      said.push('SIGKILL')
    },
    ...change,
  }
}

function stop(run: Run, steps: StopStep[]) {
  const timers = createManualTimers()
  const errors: unknown[] = []
  const { signal } = new AbortController()
  const over = descend({ run, steps, timers, signal, tell() {}, onUnexpected: (error) => errors.push(error) })
  const advance = async (ms: number) => {
    timers.advance(ms)
    await turn()
  }
  return { over, errors, advance }
}

test('a command that is not taken is sent again each second, and its time begins when it is taken', async () => {
  // The second: the line to its supervisor was cut, while the game goes on.
  const answers = ['full', 'gone', null] as const
  let tries = 0
  const run = scriptedRun({ input: async () => answers[tries++] ?? null })
  const { over, advance } = stop(run, [STOP, TERM])
  await turn()
  for (const expected of [2, 3]) {
    await advance(1000)
    assert.equal(tries, expected)
  }
  await advance(119_000)
  assert.deepEqual(run.said, [], 'it may save for as long as its template says')
  await advance(1000)
  assert.deepEqual(run.said, ['SIGTERM'])
  await advance(10_000)
  await over
  assert.deepEqual([tries, run.said], [3, ['SIGTERM', 'SIGKILL']])
})

test('a signal that fails is sent again each second, which is said once', async () => {
  let tries = 0
  const run = scriptedRun({
    async signal() {
      if (++tries < 4) throw new Error('the engine is away')
    },
  })
  const { over, errors, advance } = stop(run, [TERM])
  await turn()
  for (let second = 0; second < 3; second++) await advance(1000)
  assert.deepEqual([tries, errors.length], [4, 1])
  await advance(9000)
  assert.deepEqual(run.said, [], 'its time began when it was taken')
  await advance(1000)
  await over
  assert.deepEqual(run.said, ['SIGKILL'])
})

test('a run that waits to begin is given up at once: there is nothing to save', async () => {
  let isWaiting = true
  const run = scriptedRun({ giveUpWaiting: () => isWaiting })
  await stop(run, [STOP, TERM]).over
  assert.deepEqual(run.said, [])
  isWaiting = false
  void stop(run, [STOP, TERM]).over
  await turn()
  assert.deepEqual(run.said, ['stop'])
})

test('a step that hangs or fails is over after its own time', async () => {
  const run = scriptedRun({
    input: () => new Promise(() => {}),
    signal: async () => {
      throw new Error('the disk does not answer')
    },
  })
  const { over, errors, advance } = stop(run, [STOP, TERM])
  await turn()
  await advance(120_000)
  assert.deepEqual([run.said, errors.length], [[], 1])
  await advance(10_000)
  await over
  assert.deepEqual(run.said, ['SIGKILL'])
})

test('A kill that was answered is sent until it is taken, also by the next service', async () => {
  const timers = createManualTimers()
  let isAway = true
  let tries = 0
  let told: RunEvents | undefined
  const run = scriptedRun({
    async kill() {
      tries++
      if (isAway) throw new Error('the engine does not answer')
      const end = { code: null, signal: 'SIGKILL' as const, isOutOfMemory: false, at: Date.now() }
      told?.ended({ ...end, wasReady: true, saidStop: false, lastLine: null })
    },
  })
  const runtime: GameRuntime = {
    check: async () => {},
    async start(_, events) {
      told = events
      return { run, runtime: null as never }
    },
    async find(_, events) {
      told = events
      return run
    },
  }
  await using harness = await openGames({ timers, runtime })
  await harness.create(S, 'plain')
  await harness.power(S, 'start')
  await harness.reach(S, 'running')
  assert.equal(await harness.power(S, 'kill'), true)
  for (const expected of [2, 3]) {
    timers.advance(1000)
    await until(async () => tries === expected)
  }
  await harness.restart()
  const { power } = await harness.games.read({ serverId: S })
  assert.deepEqual([power.state, power.step, tries], ['stopping', 'waiting for SIGKILL to end it', 4])
  isAway = false
  timers.advance(1000)
  await harness.reach(S, 'stopped')
  assert.equal((await harness.games.read({ serverId: S })).power.exit?.reason, 'killed')
  assert.equal(harness.errors.length, 2, 'said once by each service')
})

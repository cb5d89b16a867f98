// The supervisor of the next game is kept ready, once a game has been started.
import assert from 'node:assert/strict'
import { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { childrenNow } from '../../../test/support/children.ts'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { type GamesHarness, openGames } from './games.testing.ts'
import { identify, isAlive } from './process-identity.ts'
import { childWithoutPipes, failingSpawn } from './supervisor/failing-spawn.testing.ts'
import type { RunRecord } from './supervisor/protocol.ts'
import { spawnSupervisor } from './supervisor/supervisor-client.ts'

const S = 'srv_castle'

function supervisorOf({ dataDir }: GamesHarness): number {
  const folder = join(dataDir, 'servers', S, 'game')
  const [name] = readdirSync(folder).filter((each) => each.startsWith('run-'))
  return (JSON.parse(readFileSync(join(folder, name as string), 'utf8')) as RunRecord).supervisor.pid
}

async function startAndStop(harness: GamesHarness): Promise<number> {
  await harness.power(S, 'start')
  await harness.reach(S, 'running')
  const pid = supervisorOf(harness)
  await harness.power(S, 'stop')
  await harness.reach(S, 'stopped')
  await until(async () => !childrenNow().includes(pid))
  return pid
}

suite('a supervisor that is kept ready', needs('bubblewrap'), () => {
  test('is that of the next start, and one that was ended meanwhile is nobody’s', async () => {
    await using harness = await openGames({ options: { keepsSupervisorReady: true } })
    await harness.create(S, 'plain')
    await startAndStop(harness)
    await until(async () => childrenNow().length > 0)
    const [ready, ...others] = childrenNow() as [number, ...number[]]
    assert.deepEqual(others, [])
    assert.equal(await startAndStop(harness), ready)

    await until(async () => childrenNow().length > 0)
    const [next] = childrenNow() as [number]
    const identity = identify(next)
    process.kill(next, 'SIGKILL')
    await until(async () => !identity || !isAlive(identity))
    assert.notEqual(await startAndStop(harness), next)
    await until(async () => childrenNow().length > 0)
    assert.deepEqual(harness.errors, [])
    for (const pid of childrenNow()) process.kill(pid, 'SIGKILL')
  })

  test('is done without where there are no descriptors or no memory for it: the game that was started is kept', async () => {
    const outOfMemory = (): ChildProcess => {
      throw Object.assign(new Error('spawn ENOMEM'), { code: 'ENOMEM' })
    }
    for (const fail of [childWithoutPipes, outOfMemory]) {
      await using harness = await openGames({ options: { keepsSupervisorReady: true } })
      await harness.create(S, 'plain')
      using spawning = failingSpawn(1, fail)
      await harness.power(S, 'start', { ready: [] })
      await harness.reach(S, 'running')
      await until(async () => spawning.count() === 2)
      await harness.power(S, 'stop')
      await harness.reach(S, 'stopped')
      assert.deepEqual(harness.errors, [])
    }
  })

  test('a start without descriptors for a supervisor says so', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    using _spawning = failingSpawn(0, childWithoutPipes)
    await assert.rejects(harness.power(S, 'start'), /EMFILE/)
  })

  test('one that a signal has ended is not alive, whoever has its number now', () => {
    const killed = () => Object.assign(new ChildProcess(), { pid: process.pid, signalCode: 'SIGKILL' })
    using _spawning = failingSpawn(0, killed)
    using supervisor = spawnSupervisor('/')
    assert.equal(supervisor.mayBeAlive(), false)
  })

  test('is none by default: what was not asked for is not left behind', async () => {
    // Supervisors of the tests before stay for a moment after their games.
    await until(async () => childrenNow().length === 0)
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await startAndStop(harness)
    assert.deepEqual(childrenNow(), [])
  })
})

// A real game, measured.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needs } from '../../../../test/support/needs.ts'
import { until } from '../../../../test/support/until.ts'
import { createManualTimers, openGames } from '../games.testing.ts'
import { readRunUsage } from '../run-usage.ts'

const S = 'srv_castle'
const BUSY = '$|=1; my @m = ("x") x 500000; print "Done (\\n"; 1 while 1'

suite('what a game uses', needs('bubblewrap'), () => {
  test('processor time and memory of the game are measured, and go on after a restart of the service', async () => {
    const timers = createManualTimers()
    timers.advance(10_000 - (timers.now() % 10_000))
    await using harness = await openGames({ timers })
    await harness.create(S, 'plain')
    await harness.power(S, 'start', { argv: ['perl', '-e', BUSY] })
    await harness.reach(S, 'running')
    const usedSeconds = async () => (await harness.games.readUsage({ limit: 10 })).games[0]?.cpuSeconds ?? 0
    const sampleUntilMore = async () => {
      const before = await usedSeconds()
      await until(async () => {
        timers.advance(1)
        await harness.games.sample()
        return (await usedSeconds()) > before
      })
    }
    const begin = timers.now()
    await harness.games.sample()
    timers.advance(10_000)
    await sampleUntilMore()
    await harness.restart()
    timers.advance(10_000)
    await harness.games.sample()
    timers.advance(10_000)
    await sampleUntilMore()
    const { step, data } = await harness.games.readStats({ serverId: S, since: begin - 10_000, stepSeconds: null })
    assert.equal(step, 10)
    assert.deepEqual(
      data.map(({ at }) => (Date.parse(at) - begin) / 10_000),
      [-1, 0, 1, 2],
    )
    assert.deepEqual(
      data.map(({ cpuPercent }) => (cpuPercent === null ? null : cpuPercent > 0)),
      [null, true, null, true],
      'a rate needs two measurements by one service',
    )
    for (const { memoryBytes } of data) assert.ok(memoryBytes && memoryBytes > 2e6 && memoryBytes < 200e6)
    assert.deepEqual(
      new Set(data.flatMap((point) => [point.networkReceivedBytesPerSecond, point.networkSentBytesPerSecond])),
      new Set([null]),
      'it shares the network of the machine',
    )
    await harness.power(S, 'kill')
    await harness.reach(S, 'stopped')
    await harness.games.sample()
    assert.deepEqual(await harness.games.readUsage({ limit: 10 }), { games: [], running: 0 })
    rmSync(join(harness.dataDir, 'servers', S, 'game', 'stats.bin'))
    const after = await harness.games.readStats({ serverId: S, since: null, stepSeconds: null })
    assert.deepEqual(after.data, [], 'a file that is gone costs its points and nothing else')
    assert.deepEqual(harness.errors, [])
  })

  test('without a control group, processes are counted by who started whom', () => {
    const usage = readRunUsage(process.pid, [])
    assert.ok(usage.cpuSeconds && usage.cpuSeconds > 0 && usage.memoryBytes && usage.memoryBytes > 10e6)
    assert.deepEqual(readRunUsage(process.pid, ['/nowhere']).networkSentBytes, null)
    const gone = readRunUsage(2 ** 30, [])
    assert.deepEqual([gone.cpuSeconds, gone.memoryBytes], [0, 0])
  })

  test('a game with a network of its own has its bytes counted', async (t) => {
    const child = spawn('unshare', ['--map-root-user', '--net', 'sh', '-c', 'echo in; exec sleep 60'])
    t.after(() => child.kill('SIGKILL'))
    const isIn = await Promise.race([
      once(child.stdout, 'data').then(() => true),
      once(child, 'exit').then(() => false),
    ])
    if (!isIn) return t.skip('the machine gives no network of its own')
    const { networkReceivedBytes, networkSentBytes } = readRunUsage(child.pid as number, [])
    assert.deepEqual([networkReceivedBytes, networkSentBytes], [0, 0], 'it has none but loopback')
  })
})

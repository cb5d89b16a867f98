// A machine that shuts down tells all processes at once to end.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { createManualTimers, openGames } from './games.testing.ts'
import { runOf } from './runtime.contract.ts'

const S = 'srv_castle'
const SAVES_FOR_A_WHILE = `trap 'sleep 1.5; echo saved > world.txt; echo "The world is saved"; exit 0' TERM
echo "Done (0.1s)!"
while :; do sleep 0.1; done`

suite('a machine that shuts down', needs('bubblewrap'), () => {
  test('a game that saves when the machine goes down is waited for, with bubblewrap gone already', async () => {
    await using harness = await openGames({ timers: createManualTimers() })
    await harness.create(S, 'plain')
    await harness.power(S, 'start', { argv: ['/bin/sh', '-c', SAVES_FOR_A_WHILE] })
    await harness.reach(S, 'running')
    const leader = runOf(harness).game?.pid ?? 0
    const bubblewrap = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${leader}/status`, 'utf8'))?.[1])
    assert.match(readFileSync(`/proc/${bubblewrap}/comm`, 'utf8'), /bwrap/)
    process.kill(bubblewrap, 'SIGTERM')
    process.kill(-leader, 'SIGTERM')
    await until(async () => !harness.games.isRunning(S))
    assert.ok(existsSync(join(harness.filesOf(S), 'world.txt')))
    assert.ok((await harness.linesOf(S)).includes('The world is saved'))
  })
})

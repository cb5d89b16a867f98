import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { LONGEST_TURN_MS, type LongTurn, watchTurns } from './turns.ts'

const cpuMs = () => process.threadCpuUsage().user / 1000 + process.threadCpuUsage().system / 1000

/** Without the time in which it is stopped to be looked at. */
function spinFor(ms: number): void {
  for (let [spent, last] = [0, cpuMs()]; spent < ms; ) {
    const now = cpuMs()
    spent += Math.min(now - last, 1)
    last = now
  }
}

test('a turn of 150 ms of processor time is caught, with its stack', async () => {
  const { promise, resolve } = Promise.withResolvers<LongTurn>()
  using watch = watchTurns(resolve)
  await watch.ready
  setTimeout(() => spinFor(1.5 * LONGEST_TURN_MS + 20), 0)
  const turn = await promise
  assert.ok(turn.cpuMs > LONGEST_TURN_MS, `${turn.cpuMs} ms`)
  assert.match(turn.stack, /spinFor .*turns\.test\.ts/)
})

test('so is one in which as much time goes to the garbage collector', async () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const { promise, resolve } = Promise.withResolvers<LongTurn>()
  using watch = watchTurns(resolve)
  await watch.ready
  setTimeout(() => {
    spinFor(1.5 * LONGEST_TURN_MS + 20)
    for (const begun = performance.now(); performance.now() - begun < 1.5 * LONGEST_TURN_MS; ) collect()
    spinFor(1.5 * LONGEST_TURN_MS)
  }, 0)
  assert.ok((await promise).cpuMs > LONGEST_TURN_MS)
})

test('the same work in turns of 20 ms is not, nor is a turn that waits', async () => {
  using watch = watchTurns()
  await watch.ready
  for (let turn = 0; turn < 15; turn++) {
    spinFor(20)
    await delay(1)
  }
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * LONGEST_TURN_MS)
  assert.deepEqual(await watch.longTurns(), [])
})

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

/** As often as it takes: a turn is excused while the machine's host takes as much of another processor. */
async function firstCaught(work: () => void): Promise<LongTurn> {
  let caught: LongTurn | undefined
  using watch = watchTurns((turn) => {
    caught ??= turn
  })
  await watch.ready
  while (!caught) {
    await delay(1)
    work()
    await watch.longTurns()
  }
  return caught
}

test('a turn of 150 ms of processor time is caught, with its stack', { timeout: 60_000 }, async () => {
  const turn = await firstCaught(() => spinFor(1.5 * LONGEST_TURN_MS + 20))
  assert.ok(turn.cpuMs > LONGEST_TURN_MS, `${turn.cpuMs} ms`)
  assert.match(turn.stack, /spinFor .*turns\.test\.ts/)
})

test('so is one in which as much time goes to the garbage collector', { timeout: 60_000 }, async () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const turn = await firstCaught(() => {
    spinFor(1.5 * LONGEST_TURN_MS + 20)
    for (const begun = performance.now(); performance.now() - begun < 1.5 * LONGEST_TURN_MS; ) collect()
    spinFor(1.5 * LONGEST_TURN_MS)
  })
  assert.ok(turn.cpuMs > LONGEST_TURN_MS)
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

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mirrorBackOffMs } from './mirroring.ts'
import { createWokenLoop } from './woken-loop.ts'

const TIMES = { settleMs: 0, backOffMs: () => 3_600_000, now: () => 1000 }

test('runs once for all who woke it meanwhile, and never twice at a time', async () => {
  let running = 0
  let runs = 0
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const loop = createWokenLoop(async () => {
    assert.equal(++running, 1)
    begun[runs]?.resolve()
    await gates[runs++]?.promise
    running--
  }, TIMES)
  loop.start()
  loop.wake()
  await begun[0]?.promise
  for (let i = 0; i < 3; i++) loop.wake()
  gates[0]?.resolve()
  await begun[1]?.promise
  gates[1]?.resolve()
  await loop.stop()
  assert.equal(runs, 2)
})

test('waits after a failure, whoever wakes it, until it is hastened', async () => {
  let runs = 0
  const failed = Promise.withResolvers<void>()
  const again = Promise.withResolvers<void>()
  const loop = createWokenLoop(async () => {
    if (++runs === 2) again.resolve()
    if (runs > 1) return
    failed.resolve()
    throw new Error('no')
  }, TIMES)
  loop.start()
  loop.wake()
  await failed.promise
  loop.wake()
  await new Promise(setImmediate)
  assert.equal(runs, 1)
  assert.equal(loop.nextAt, 3_601_000)
  loop.hasten()
  await again.promise
  await loop.stop()
  assert.equal(loop.nextAt, null)
})

test('stops at once, also in the middle of a run or of a wait', async () => {
  const begun = Promise.withResolvers<void>()
  const loop = createWokenLoop(async (signal) => {
    begun.resolve()
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }, TIMES)
  loop.start()
  loop.wake()
  await begun.promise
  await loop.stop()
})

test('backs off from ten seconds to half an hour, and not everybody at the same instant', () => {
  assert.equal(mirrorBackOffMs(1, 0), 10_000)
  assert.equal(mirrorBackOffMs(1, 1), 5000)
  assert.equal(mirrorBackOffMs(3, 0), 40_000)
  assert.equal(mirrorBackOffMs(99, 0), 1_800_000)
})

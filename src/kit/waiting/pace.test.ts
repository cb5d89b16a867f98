import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPace } from './pace.ts'

test('a burst comes at once, and from then on one waits for the other', () => {
  let time = 0
  const pace = createPace({ unitsPerSecond: 10, burst: 3, waitMs: 250, now: () => time })
  const waits = () => pace.take('a', 1).waitMs
  assert.deepEqual([waits(), waits(), waits(), waits(), waits(), waits()], [0, 0, 0, 0, 100, 200])
  assert.deepEqual(pace.take('a', 1), { waitMs: 300, isTaken: false })
  assert.deepEqual(pace.take('a', 1), { waitMs: 300, isTaken: false }, 'whoever is refused takes nothing')
  assert.equal(pace.take('b', 1).waitMs, 0, 'each has a pace of its own')
  time += 10_000
  assert.deepEqual([waits(), waits(), waits(), waits(), waits()], [0, 0, 0, 0, 100], 'what is not used is not saved up')
})

test('what is given back is waited for by nobody', () => {
  const pace = createPace({ unitsPerSecond: 10, waitMs: 1000, now: () => 0 })
  pace.take('a', 5)
  pace.giveBack('a', 4)
  pace.giveBack('b', 4)
  assert.deepEqual([pace.take('a', 1).waitMs, pace.take('b', 1).waitMs], [100, 0])
})

test('what is forgotten of those who do not come any more changes nothing for the others', () => {
  let time = 0
  const pace = createPace({ unitsPerSecond: 1, waitMs: 60_000, now: () => time })
  for (let key = 0; key < 1500; key++) pace.take(String(key), key < 750 ? 1 : 50)
  time += 10_000
  pace.take('another', 1)
  assert.equal(pace.take('10', 1).waitMs, 0)
  assert.equal(pace.take('1400', 1).waitMs, 40_000)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter } from './limiter.ts'

test('beyond the limit every second response slips, the others are dropped, and a second later all is well', () => {
  let now = 1_000_000
  const judge = createLimiter({ perSecond: 5, now: () => now })
  const verdicts = Array.from({ length: 9 }, () => judge('192.0.2.1'))
  assert.deepEqual(verdicts, [...Array(5).fill('answer'), 'drop', 'slip', 'drop', 'slip'])
  now += 1000
  assert.equal(judge('192.0.2.1'), 'answer')
})

test('a network shares one budget; another network has its own', () => {
  const judge = createLimiter({ perSecond: 1, now: () => 0, seed: 1 })
  assert.equal(judge('192.0.2.1'), 'answer')
  assert.equal(judge('192.0.2.200'), 'drop')
  assert.equal(judge('::ffff:192.0.2.3'), 'slip')
  assert.equal(judge('198.51.100.1'), 'answer')
  assert.equal(judge('2001:db8:1:ab01::1'), 'answer')
  assert.equal(judge('2001:db8:1:abff::9'), 'drop')
  assert.equal(judge('2001:db8:1:ac01::1'), 'answer')
})

test('a limit of 0 is none', () => {
  const judge = createLimiter({ perSecond: 0 })
  for (let count = 0; count < 100; count++) assert.equal(judge('192.0.2.1'), 'answer')
})

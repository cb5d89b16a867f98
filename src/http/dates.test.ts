import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpDate, timeOf } from './dates.ts'

test('the three forms of a date in a header are one time, wherever the machine is', () => {
  const zone = process.env.TZ
  process.env.TZ = 'Asia/Tokyo'
  try {
    const time = Date.UTC(1994, 10, 6, 8, 49, 37)
    for (const text of [
      'Sun, 06 Nov 1994 08:49:37 GMT',
      'Sunday, 06-Nov-94 08:49:37 GMT',
      'Sun Nov  6 08:49:37 1994',
      httpDate(new Date(time)),
    ])
      assert.equal(timeOf(text), time, text)
  } finally {
    if (zone === undefined) delete process.env.TZ
    else process.env.TZ = zone
  }
})

test('what is no date of a header is no time', () => {
  for (const text of [
    undefined,
    '',
    '1',
    'foo 7',
    '2020-01-01',
    '2020-01-01T00:00:00Z',
    'Sun, 06 Nov 1994 08:49:37',
    'Sun, 06 Nov 1994 08:49:37 +0100',
    'Sun, 99 Nov 1994 08:49:37 GMT',
  ])
    assert.ok(Number.isNaN(timeOf(text)), `${text}`)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { calendarOf, previewOf } from './kept.ts'

const NONE = { keepLast: null, keepHourly: null, keepDaily: null, keepWeekly: null, keepMonthly: null }
const backup = (id: string, createdAt: string, isLocked = false) => ({
  ...{ id, name: id, createdAt, isLocked },
  status: 'completed' as const,
})
const BACKUPS = [
  backup('c', '2026-11-16T20:00:00.000Z'),
  backup('b', '2026-11-16T08:00:00.000Z'),
  backup('a', '2026-10-31T08:00:00.000Z', true),
]

test('the newest of a day is kept and the other goes, a locked one stays, and one that is not complete does not count', () => {
  const running = { ...backup('d', '2026-11-16T21:00:00.000Z'), status: 'running' as const }
  const fates = previewOf([running, ...BACKUPS], { ...NONE, keepDaily: 1 })
  assert.deepEqual(
    fates.map(({ id, isKept }) => [id, isKept]),
    [
      ['c', true],
      ['b', false],
      ['a', true],
    ],
  )
})

test('the calendar has each month with a backup, from its weekday on', () => {
  const [november, october] = calendarOf(previewOf(BACKUPS, { ...NONE, keepDaily: 1 }))
  // 2026-11-01 is a Sunday, 2026-10-01 a Thursday.
  assert.deepEqual([november?.offset, november?.days.length], [6, 30])
  assert.deepEqual([october?.offset, october?.days.length], [3, 31])
  assert.deepEqual([november?.days[15]?.kept.length, november?.days[15]?.going.length], [1, 1])
  assert.equal(october?.days[30]?.kept[0]?.id, 'a')
})

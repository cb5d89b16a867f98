import assert from 'node:assert/strict'
import { test } from 'node:test'
import { columnsOf, hasAny, mostOf } from './chart-data.ts'

const point = (second: number, cpuPercent: number | null) => ({
  at: new Date(second * 1000).toISOString(),
  cpuPercent,
  memoryBytes: null,
  diskBytes: null,
  networkReceivedBytesPerSecond: null,
  networkSentBytesPerSecond: null,
  players: null,
})

test('a chart has a hole where the game did not run, and none where a point is a moment late', () => {
  const points = [point(0, 5), point(10, 7), point(24, 1), point(100, 2)]
  const columns = columnsOf({ points, stepSeconds: 10 }, 'cpuPercent')
  assert.deepEqual(columns, [
    [0, 10, 24, 34, 100],
    [5, 7, 1, null, 2],
  ])
  assert.equal(mostOf(columns), 7)
  assert.equal(hasAny(points, 'players'), false)
  assert.equal(mostOf(columnsOf({ points, stepSeconds: 10 }, 'players')), null)
})

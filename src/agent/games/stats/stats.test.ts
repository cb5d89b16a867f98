// A week of points on a real disk.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { STATS_TIERS } from '../../../contract/fixed-limits.ts'
import { createGameStats } from './index.ts'
import type { Point } from './stats-point.ts'
import { createStatsSeries } from './stats-series.ts'

const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-stats-'))
after(() => rmSync(folder, { recursive: true }))
let files = 0
const newFile = () => join(folder, String(files++))

const STEP_MS = 10_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const BEGIN = Date.parse('2026-11-01T00:00:00.000Z')

const pointAt = (at: number, change: Partial<Point> = {}): Point => ({
  at,
  samples: 1,
  cpuPercent: 50,
  memoryBytes: 1e9,
  diskBytes: 2e9,
  networkReceivedBytesPerSecond: null,
  networkSentBytesPerSecond: 7,
  players: 0,
  ...change,
})

const open = (file: string, errors: unknown[] = []) => createStatsSeries(file, (error) => errors.push(error))

test('Points are kept every 10 seconds for an hour, every minute for a day and every 10 minutes for a week, in a file of fixed size', async () => {
  const file = newFile()
  const series = open(file)
  const end = BEGIN + 8 * DAY_MS
  for (let at = BEGIN; at < end; at += STEP_MS) series.add(pointAt(at, { cpuPercent: (at / STEP_MS) % 6 }))
  series.flush()
  const bytes = STATS_TIERS.reduce((sum, { points }) => sum + 64 * points, 0)
  assert.equal(statSync(file).size, bytes)
  for (const [sinceMs, step, count] of [
    [HOUR_MS, 10, 360],
    [DAY_MS, 60, 1440],
    [7 * DAY_MS, 600, 1008],
    [30 * DAY_MS, 600, 1008],
  ] as const) {
    const { stepMs, points } = await open(file).read(end - sinceMs, null, end)
    assert.deepEqual([stepMs / 1000, points.length], [step, count])
    assert.deepEqual(
      points.map(({ at }) => at),
      points.map((_, index) => end - (count - index) * stepMs),
    )
    if (step > 10) assert.ok(points.every(({ cpuPercent }) => Math.abs((cpuPercent ?? 0) - 2.5) < 1e-9))
  }
  const hours = await open(file).read(end - DAY_MS, 3600_000, end)
  assert.deepEqual([hours.stepMs, hours.points.length], [HOUR_MS, 24])
  const odd = await open(file).read(end - HOUR_MS, 25_000, end)
  assert.equal(odd.stepMs, 30_000, 'a multiple of what is kept')
})

test('A longer step is the average, of players the most, and what is not known does not count', async () => {
  const series = open(newFile())
  series.add(pointAt(BEGIN, { cpuPercent: null, players: 3, memoryBytes: 100 }))
  series.add(pointAt(BEGIN + STEP_MS, { cpuPercent: 10, players: 1, memoryBytes: 200 }))
  series.add(pointAt(BEGIN + 2 * STEP_MS, { cpuPercent: 20, players: null, memoryBytes: 300 }))
  const { points } = await series.read(BEGIN, 60_000, BEGIN + 3 * STEP_MS)
  assert.deepEqual(
    points.map(({ players, memoryBytes, networkReceivedBytesPerSecond, networkSentBytesPerSecond }) => ({
      ...{ players, memoryBytes, networkReceivedBytesPerSecond, networkSentBytesPerSecond },
    })),
    [{ players: 3, memoryBytes: 200, networkReceivedBytesPerSecond: null, networkSentBytesPerSecond: 7 }],
  )
})

test('A SIGKILL of the service loses the last minute at most', async () => {
  const file = newFile()
  const before = open(file)
  for (let n = 0; n < 20; n++) before.add(pointAt(BEGIN + n * STEP_MS, { memoryBytes: 100 }))
  // It is gone, and the next one measures on.
  const next = open(file)
  for (let n = 20; n < 36; n++) next.add(pointAt(BEGIN + n * STEP_MS, { memoryBytes: 200 }))
  const end = BEGIN + 36 * STEP_MS
  const { points } = await next.read(BEGIN, 10_000, end)
  assert.ok(points.length >= 36 - 6, `${points.length} of 36 are there`)
  const [tenMinutes] = (await next.read(BEGIN, 600_000, end)).points
  assert.ok(tenMinutes && tenMinutes.samples >= 30)
  const average = tenMinutes?.memoryBytes ?? 0
  assert.ok(average > 140 && average < 160, `${average} is the average of both`)
})

test('A damaged file costs the points that are damaged, and nothing else', async () => {
  const file = newFile()
  const series = open(file)
  for (let n = 0; n < 12; n++) series.add(pointAt(BEGIN + n * STEP_MS))
  series.flush()
  const content = readFileSync(file)
  const [index] = [(BEGIN / STEP_MS) % 360]
  content.fill(0xff, index * 64 + 20, index * 64 + 40)
  writeFileSync(file, content)
  const end = BEGIN + 12 * STEP_MS
  assert.equal((await open(file).read(BEGIN, 10_000, end)).points.length, 11)
  writeFileSync(file, content.subarray(0, 1000))
  const errors: unknown[] = []
  await open(file, errors).read(BEGIN, 10_000, end)
  assert.deepEqual(errors, [])
  rmSync(file)
  mkdirSync(file)
  const onFolder = open(file, errors)
  onFolder.add(pointAt(BEGIN))
  onFolder.flush()
  assert.equal((await onFolder.read(BEGIN, 60_000, end)).points.length, 1, 'what is in memory is still there')
  assert.ok(errors.length > 0)
})

test('who follows gets each point once, from memory or from the file', async () => {
  const series = open(newFile())
  for (let n = 0; n < 40; n++) series.add(pointAt(BEGIN + n * STEP_MS))
  for (const from of [0, 39, 30, 5]) {
    const points = await series.after(BEGIN + (from - 1) * STEP_MS)
    assert.deepEqual(
      points.map(({ at }) => (at - BEGIN) / STEP_MS),
      Array.from({ length: 40 - from }, (_, index) => from + index),
    )
  }
})

test('the hour that is shown by default has the finest steps, however late the clock is asked', async () => {
  let now = BEGIN
  const stats = createGameStats({
    file: newFile,
    diskBytes: () => null,
    players: () => null,
    now: () => now++,
    onUnexpected: assert.ifError,
  })
  assert.equal((await stats.read('srv_castle', null, null)).step, 10)
})

// A point of a series, and how points become one of a longer step.
import type { StatsPoint } from '../../../contract/games/stats.ts'
import { iso } from '../../../kit/time.ts'

export const FIELDS = [
  'cpuPercent',
  'memoryBytes',
  'diskBytes',
  'networkReceivedBytesPerSecond',
  'networkSentBytesPerSecond',
  'players',
] as const
export type Field = (typeof FIELDS)[number]

export interface Point extends Record<Field, number | null> {
  /** Where its step begins, in milliseconds. */
  at: number
  /** How many measurements are in it. */
  samples: number
}

/** One point for the time of both, at `at`. Averages, but for players: of these the most were there at once. */
export function merge(a: Point | undefined, b: Point, at: number): Point {
  if (!a) return { ...b, at }
  const merged: Point = { ...b, at, samples: a.samples + b.samples }
  for (const field of FIELDS) {
    const [x, y] = [a[field], b[field]]
    if (x === null || y === null) merged[field] = x ?? y
    else if (field === 'players') merged[field] = Math.max(x, y)
    else merged[field] = (x * a.samples + y * b.samples) / merged.samples
  }
  return merged
}

/** Sorted, one for each step. */
export function mergeAll(points: Iterable<Point>, stepMs: number): Point[] {
  const merged = new Map<number, Point>()
  for (const point of points) {
    const at = Math.floor(point.at / stepMs) * stepMs
    merged.set(at, merge(merged.get(at), point, at))
  }
  return [...merged.values()].sort((a, b) => a.at - b.at)
}

const hundredths = (value: number | null) => (value === null ? null : Math.round(value * 100) / 100)
const whole = (value: number | null) => (value === null ? null : Math.round(value))

export const shown = (point: Point): StatsPoint => ({
  at: iso(point.at),
  cpuPercent: hundredths(point.cpuPercent),
  memoryBytes: whole(point.memoryBytes),
  diskBytes: whole(point.diskBytes),
  networkReceivedBytesPerSecond: hundredths(point.networkReceivedBytesPerSecond),
  networkSentBytesPerSecond: hundredths(point.networkSentBytesPerSecond),
  players: whole(point.players),
})

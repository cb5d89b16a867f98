// Points of a series as a chart takes them: columns, with a hole wherever the game did not run.
import type { StatsPoint } from '../../../../../src/sdk/index.ts'
import type { Series } from '../../../api/stats.ts'

export type Measure = 'cpuPercent' | 'memoryBytes' | 'players'
export type Columns = [number[], (number | null)[]]

export function columnsOf({ points, stepSeconds }: Series, measure: Measure): Columns {
  const times: number[] = []
  const values: (number | null)[] = []
  let before: number | null = null
  for (const point of points) {
    const at = Date.parse(point.at) / 1000
    // A step and a half: one point that is late by a moment is no hole.
    if (before !== null && at - before > stepSeconds * 1.5) {
      times.push(before + stepSeconds)
      values.push(null)
    }
    times.push(at)
    values.push(point[measure])
    before = at
  }
  return [times, values]
}

export const hasAny = (points: readonly StatsPoint[], measure: Measure) =>
  points.some((point) => point[measure] !== null)

/** Null where nothing was measured. */
export function mostOf([, values]: Columns): number | null {
  let most: number | null = null
  for (const value of values) if (value !== null && (most === null || value > most)) most = value
  return most
}

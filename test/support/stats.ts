// Points of a game that has run, without waiting for it to.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { TIERS, type Tier, writePoints } from '../../src/agent/games/stats/stats-file.ts'

const STEP_MS = 10_000

/** As if it had been measured until just now. Answers the times of the points, oldest first. */
export function writeStats(gameFolder: string, points: number): number[] {
  mkdirSync(gameFolder, { recursive: true })
  const newest = Math.floor(Date.now() / STEP_MS) * STEP_MS - STEP_MS
  const times = Array.from({ length: points }, (_, index) => newest - (points - 1 - index) * STEP_MS)
  const values = { samples: 1, cpuPercent: 12.345, memoryBytes: 1e9, diskBytes: null, players: 2 }
  const network = { networkReceivedBytesPerSecond: null, networkSentBytesPerSecond: null }
  const [tier] = TIERS as [Tier]
  writePoints(
    join(gameFolder, 'stats.bin'),
    times.map((at) => ({ tier, point: { at, ...values, ...network } })),
  )
  return times
}

// What a game would have used over a week, for charts that have something to show.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { TIERS, writePoints } from '../../../src/agent/games/stats/stats-file.ts'

const HOUR_MS = 3_600_000
const UNKNOWN = { diskBytes: null, networkReceivedBytesPerSecond: null, networkSentBytesPerSecond: null }

/** More in the evening than in the morning, with a flicker that is the same every time. */
function pointAt(at: number) {
  const hour = at / HOUR_MS
  const evening = Math.max(0, Math.sin(((hour % 24) - 10) * (Math.PI / 12)))
  const flicker = Math.abs(Math.sin(at * 12.9898) * 43_758.5453) % 1
  const players = Math.round(9 * evening + flicker)
  return {
    at,
    samples: 1,
    cpuPercent: 1 + 22 * evening + 4 * flicker,
    memoryBytes: 2.4e7 + 6e6 * evening + 1e6 * flicker,
    players,
    ...UNKNOWN,
  }
}

export function writePastWeek(gameFolder: string): void {
  mkdirSync(gameFolder, { recursive: true })
  const points = TIERS.flatMap((tier) => {
    const newest = Math.floor(Date.now() / tier.stepMs) * tier.stepMs - 2 * tier.stepMs
    return Array.from({ length: tier.points - 3 }, (_, index) => ({
      tier,
      point: pointAt(newest - index * tier.stepMs),
    }))
  })
  writePoints(join(gameFolder, 'stats.bin'), points)
}

// The points of one server: the last minute of them in memory, all others in its file.

import { readPoint, readTier, TIERS, type Tier, writePoints } from './stats-file.ts'
import { merge, mergeAll, type Point } from './stats-point.ts'

export interface StatsSeries {
  /** Of the finest tier. Once a minute it writes what has come since. */
  add(point: Point): void
  /** Writes what was not written yet. */
  flush(): void
  /** Those of the finest tier that begin after this. */
  after(at: number): Promise<Point[]>
  /** Those from `since` on, of the step that was asked for or the next longer one that is kept. */
  read(since: number, stepMs: number | null, now: number): Promise<{ stepMs: number; points: Point[] }>
}

const [FINEST, ...COARSER] = TIERS as [Tier, ...Tier[]]

/** `onUnexpected`: a file that cannot be used costs its points and nothing else. */
export function createStatsSeries(file: string, onUnexpected: (error: unknown) => void): StatsSeries {
  /** The last ones of the finest tier, so that who follows needs no file. */
  let recent: Point[] = []
  let unwritten: { tier: Tier; point: Point }[] = []
  /** What each coarser tier has so far. */
  const growing = new Map<Tier, Point>()
  let isFailing = false

  function attempt(work: () => void): void {
    try {
      work()
      isFailing = false
    } catch (error) {
      // Once, not once a minute.
      if (!isFailing) onUnexpected(error)
      isFailing = true
    }
  }

  function grow(tier: Tier, point: Point): boolean {
    const at = Math.floor(point.at / tier.stepMs) * tier.stepMs
    let before = growing.get(tier)
    if (!before) attempt(() => (before = readPoint(file, tier, at)))
    const isNext = before !== undefined && before.at !== at
    if (before && isNext) unwritten.push({ tier, point: before })
    growing.set(tier, merge(isNext ? undefined : before, point, at))
    return isNext
  }

  function flush(): void {
    const points = [...unwritten, ...[...growing].map(([tier, point]) => ({ tier, point }))]
    unwritten = []
    if (points.length > 0) attempt(() => writePoints(file, points))
  }

  async function pointsOf(tier: Tier): Promise<Point[]> {
    const byTime = new Map<number, Point>()
    const written = await readTier(file, tier).catch((error: unknown) => {
      onUnexpected(error)
      return []
    })
    const growingNow = growing.get(tier)
    const inMemory = [...unwritten.filter((each) => each.tier === tier).map(({ point }) => point)]
    for (const point of [...written, ...inMemory, ...(growingNow ? [growingNow] : [])]) byTime.set(point.at, point)
    return [...byTime.values()]
  }

  return {
    add(point) {
      unwritten.push({ tier: FINEST, point })
      recent = [...recent.slice(1 - RECENT_MAX), point]
      const isMinuteOver = COARSER.map((tier) => grow(tier, point)).some(Boolean)
      if (isMinuteOver || unwritten.length >= RECENT_MAX) flush()
    },
    flush,

    async after(at) {
      const [oldest] = recent
      const points = oldest && oldest.at <= at + FINEST.stepMs ? recent : await pointsOf(FINEST)
      return points.filter((point) => point.at > at).sort((a, b) => a.at - b.at)
    },

    async read(since, asked, now) {
      const reaching = TIERS.filter((tier) => since >= now - tier.stepMs * tier.points)
      const candidates = reaching.length > 0 ? reaching : TIERS.slice(-1)
      const wanted = Math.max(asked ?? 0, candidates[0]?.stepMs ?? 0)
      const tier = candidates.findLast(({ stepMs }) => stepMs <= wanted) ?? (candidates[0] as Tier)
      const stepMs = Math.ceil(wanted / tier.stepMs) * tier.stepMs
      const oldest = now - tier.stepMs * tier.points
      const points = (await pointsOf(tier)).filter(({ at }) => at + tier.stepMs > since && at >= oldest && at <= now)
      return { stepMs, points: mergeAll(points, stepMs) }
    },
  }
}

const RECENT_MAX = 12

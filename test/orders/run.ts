// Plays pairs: all of their orders, or a sample that a number picks.
import type { Engine } from '../../src/control/db/database.ts'
import { allPairs, type Finding, type Rehearsal, rehearse, tryOrder } from './pairs.ts'
import type { Pair, Schedule } from './schedules.ts'
import { openStage, type Stage } from './stage.ts'

export interface Plan {
  pairs: readonly Pair[]
  /** Which orders of a pair. */
  choose(rehearsal: Rehearsal, pair: Pair): readonly Schedule[]
  /** Whether to stop within the agent too, before its calls of the file system. */
  atDisk?: boolean
  onPair?(pair: Pair, played: number, findings: readonly Finding[]): void
}

export interface Result {
  played: number
  findings: Finding[]
}

export async function runOrders(engine: Engine, plan: Plan): Promise<Result> {
  const stage = await openStage(engine)
  const result: Result = { played: 0, findings: [] }
  try {
    for (const pair of plan.pairs) {
      const { played, findings } = await runPair(stage, pair, plan)
      result.played += played
      result.findings.push(...findings)
      plan.onPair?.(pair, played, findings)
    }
    return result
  } finally {
    await stage.stop()
  }
}

async function runPair(stage: Stage, pair: Pair, plan: Plan): Promise<Result> {
  const rehearsal = await rehearse(stage, pair, plan.atDisk)
  const chosen = plan.choose(rehearsal, pair)
  const findings: Finding[] = []
  for (const schedule of chosen) {
    const finding = await tryOrder(stage, pair, schedule, rehearsal)
    if (finding) findings.push(finding)
  }
  return { played: chosen.length, findings }
}

/** The same number gives the same sample. */
export function sampler(seed: number) {
  let state = seed >>> 0
  const next = (below: number) => {
    // A linear congruential generator: good enough to spread, and the same everywhere.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  return function sample<T>(items: readonly T[], count: number): T[] {
    const left = [...items]
    const chosen: T[] = []
    while (chosen.length < count && left.length > 0) chosen.push(...left.splice(next(left.length), 1))
    return chosen
  }
}

export const pairsOf = (matching: RegExp): Pair[] =>
  allPairs().filter(({ a, b }) => matching.test(`${a} × ${b}`) || matching.test(`${b} × ${a}`))

// All orders of a pair, and what is wrong with them.
import { OPERATIONS } from './operations.ts'
import { judge, type Serial } from './oracle.ts'
import { type Pair, type Played, play, playInTurn, type Role, type Schedule } from './schedules.ts'
import type { Stage } from './stage.ts'

export interface Finding {
  pair: Pair
  played: Played
  faults: string[]
}

const ORDERS: { order: string; roles: readonly Role[]; settled: boolean }[] = [
  { order: 'A, then B', roles: ['A', 'B'], settled: true },
  { order: 'B, then A', roles: ['B', 'A'], settled: true },
  { order: 'A, then B while its jobs run', roles: ['A', 'B'], settled: false },
  { order: 'B, then A while its jobs run', roles: ['B', 'A'], settled: false },
  { order: 'only A, B being refused', roles: ['A'], settled: true },
  { order: 'only B, A being refused', roles: ['B'], settled: true },
]

/** Both orders of each pair are in its schedules, so that a pair is there once. */
export function allPairs(): Pair[] {
  const names = Object.keys(OPERATIONS)
  return names.flatMap((a, i) => names.slice(i).map((b) => ({ a, b })))
}

export interface Rehearsal {
  serials: Serial[]
  /** Every point of either, to be held there. */
  schedules: Schedule[]
}

export async function rehearse(stage: Stage, pair: Pair): Promise<Rehearsal> {
  const serials: Serial[] = []
  const schedules: Schedule[] = []
  for (const { order, roles, settled } of ORDERS) {
    const outcome = await playInTurn(stage, pair, roles, settled)
    serials.push({ order, outcome })
    const [role] = roles
    if (roles.length > 1 || !role) continue
    for (let holdAt = 0; holdAt < outcome.points[role].length; holdAt++) schedules.push({ first: role, holdAt })
  }
  return { serials, schedules }
}

export async function tryOrder(
  stage: Stage,
  pair: Pair,
  schedule: Schedule,
  serials: readonly Serial[],
): Promise<Finding | undefined> {
  const played = await play(stage, pair, schedule)
  const faults = judge(played, serials)
  return faults.length > 0 ? { pair, played, faults } : undefined
}

/** How a finding is told, so that somebody can follow it step by step. */
export function tell({ pair, played, faults }: Finding): string {
  const { schedule, heldAt, points, second, answers } = played
  const other = schedule.first === 'A' ? 'B' : 'A'
  const lines = [
    `A: ${pair.a} → ${answers.A}    B: ${pair.b} → ${answers.B}`,
    ...faults.map((fault) => `  ${fault}`),
    `  ${schedule.first} ran up to its point ${schedule.holdAt}, before: ${heldAt ?? '(it ended before that)'}`,
    `  then ${other} ran and ${second}; then ${schedule.first} went on`,
    ...(['A', 'B'] as const).map((role) => `  points of ${role}: ${numbered(points[role])}`),
  ]
  return lines.join('\n')
}

const numbered = (points: readonly string[]) => points.map((point, i) => `${i} ${point}`).join(' · ')

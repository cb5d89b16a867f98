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

interface Order {
  order: string
  roles: readonly Role[]
  settled: boolean
}

/** In turn, which also tells how many points there are. */
const IN_TURN: readonly Order[] = [
  { order: 'A, then B', roles: ['A', 'B'], settled: true },
  { order: 'B, then A', roles: ['B', 'A'], settled: true },
]

/** What is to be compared with only where those two do not explain an outcome. */
const ELSE: readonly Order[] = [
  { order: 'only A, B being refused', roles: ['A'], settled: true },
  { order: 'only B, A being refused', roles: ['B'], settled: true },
  { order: 'A, then B while its jobs run', roles: ['A', 'B'], settled: false },
  { order: 'B, then A while its jobs run', roles: ['B', 'A'], settled: false },
]

/** Both orders of each pair are in its schedules, so that a pair is there once. */
export function allPairs(): Pair[] {
  const names = Object.keys(OPERATIONS)
  return names.flatMap((a, i) => names.slice(i).map((b) => ({ a, b })))
}

export interface Rehearsal {
  serials: Serial[]
  /** Those of `ELSE` that are not played yet. */
  left: Order[]
  /** Every point of either, to be held there. */
  schedules: Schedule[]
}

/** `atDisk`: with the points within the agent. */
export async function rehearse(stage: Stage, pair: Pair, atDisk = false): Promise<Rehearsal> {
  const rehearsal: Rehearsal = { serials: [], left: [...ELSE], schedules: [] }
  for (const { order, roles, settled } of IN_TURN) {
    const outcome = await playInTurn(stage, pair, roles, { settled, atDisk })
    rehearsal.serials.push({ order, outcome })
    const [first = 'A'] = roles
    for (let holdAt = 0; holdAt < outcome.points[first].length; holdAt++)
      rehearsal.schedules.push({ first, holdAt, atDisk })
  }
  return rehearsal
}

export async function tryOrder(
  stage: Stage,
  pair: Pair,
  schedule: Schedule,
  rehearsal: Rehearsal,
): Promise<Finding | undefined> {
  const played = await play(stage, pair, schedule)
  for (;;) {
    const faults = judge(played, rehearsal.serials)
    if (faults.length === 0) return undefined
    const next = rehearsal.left.shift()
    if (!next) return { pair, played, faults }
    const outcome = await playInTurn(stage, pair, next.roles, { settled: next.settled })
    rehearsal.serials.push({ order: next.order, outcome })
  }
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

// All orders of a pair, and what is wrong with them.
import { holdsOf } from './actors.ts'
import { NEVER_MEET, OPERATIONS } from './operations.ts'
import { judge, type Serial } from './oracle.ts'
import {
  type Outcome,
  type Pair,
  type Played,
  play,
  playInJobs,
  playInTurn,
  type Role,
  type Schedule,
} from './schedules.ts'
import type { Stage } from './stage.ts'

export interface Finding {
  pair: Pair
  played: Played
  faults: string[]
}

/** What an outcome is compared with where the two in turn, with their jobs, do not explain it. */
const ELSE: readonly { order: string; play(stage: Stage, pair: Pair): Promise<Outcome> }[] = [
  { order: 'only A, B being refused', play: (stage, pair) => playInTurn(stage, pair, ['A']) },
  { order: 'only B, A being refused', play: (stage, pair) => playInTurn(stage, pair, ['B']) },
  { order: 'A, then B while its jobs wait', play: (stage, pair) => playInJobs(stage, pair, 'A', 'wait') },
  { order: 'A, then B while its jobs run', play: (stage, pair) => playInJobs(stage, pair, 'A', 'run') },
  { order: 'B, then A while its jobs wait', play: (stage, pair) => playInJobs(stage, pair, 'B', 'wait') },
  { order: 'B, then A while its jobs run', play: (stage, pair) => playInJobs(stage, pair, 'B', 'run') },
]

/** Both orders of each pair are in its schedules, so that a pair is there once. */
export function allPairs(): Pair[] {
  const names = Object.keys(OPERATIONS)
  return names.flatMap((a, i) => names.slice(i).map((b) => ({ a, b }))).filter(canMeet)
}

const canMeet = ({ a, b }: Pair) =>
  !NEVER_MEET.some(({ pair: [one, other] }) => (one.test(a) && other.test(b)) || (one.test(b) && other.test(a)))

export interface Rehearsal {
  serials: Serial[]
  /** How many of `ELSE` are among them. */
  elsePlayed: number
  /** Every point of either, to be held there. */
  schedules: Schedule[]
}

/** `atDisk`: with the points within the agent. */
export async function rehearse(stage: Stage, pair: Pair, atDisk = false): Promise<Rehearsal> {
  const rehearsal: Rehearsal = { serials: [], elsePlayed: 0, schedules: [] }
  for (const first of ['A', 'B'] as const) {
    const roles: Role[] = first === 'A' ? ['A', 'B'] : ['B', 'A']
    const outcome = await playInTurn(stage, pair, roles, atDisk)
    rehearsal.serials.push({ order: roles.join(', then '), outcome })
    // A request that is wrong in itself meets nobody. One in conflict with what is there may meet what changes that.
    const answer = outcome.answers[first] ?? ''
    if (!/^2|^409|^nothing to cancel$/.test(answer))
      throw new Error(`${pair[first === 'A' ? 'a' : 'b']} alone: ${answer}`)
    const points = outcome.points[first]
    for (const [index, hold] of holdsOf(points).entries())
      rehearsal.schedules.push({ first, hold, point: points[index] ?? '', atDisk })
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
    const faults = judge(pair, played, rehearsal.serials)
    if (faults.length === 0) return undefined
    const next = ELSE[rehearsal.elsePlayed++]
    if (!next) return { pair, played, faults }
    rehearsal.serials.push({ order: next.order, outcome: await next.play(stage, pair) })
  }
}

/** How a finding is told, so that somebody can follow it step by step. */
export function tell({ pair, played, faults }: Finding): string {
  const { schedule, heldAt, points, second, answers } = played
  const other = schedule.first === 'A' ? 'B' : 'A'
  const lines = [
    `A: ${pair.a} → ${answers.A}    B: ${pair.b} → ${answers.B}`,
    ...faults.map((fault) => `  ${fault}`),
    heldAt === null
      ? `  ${schedule.first} ran to its end without coming by ${schedule.point} (${schedule.hold.nth})`
      : `  ${schedule.first} ran up to its point ${heldAt}, before: ${points[schedule.first][heldAt]}`,
    `  then ${other} ran and ${second}; then ${schedule.first} went on`,
    ...(['A', 'B'] as const).map((role) => `  points of ${role}: ${numbered(points[role])}`),
  ]
  return lines.join('\n')
}

const numbered = (points: readonly string[]) => points.map((point, i) => `${i} ${point}`).join(' · ')

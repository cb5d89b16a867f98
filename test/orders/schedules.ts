// Runs two operations in one order of their steps: the first up to one of its await points, then the second to its end or
// until it waits for the first, then the first to its end.
import { setTimeout as delay } from 'node:timers/promises'
import { Actor, type Hold } from './actors.ts'
import { OPERATIONS } from './operations.ts'
import { type Need, observe, prepare, type Scene, type State } from './scene.ts'
import { activeJobs, type Stage, settle } from './stage.ts'

export interface Pair {
  /** Names of operations; the two roles are A and B whichever goes first. */
  a: string
  b: string
}

export type Role = 'A' | 'B'

export interface Outcome {
  /** What A and B were answered; null for one that was not run. */
  answers: Record<Role, string | null>
  state: State
  /** Jobs that had not ended long after everything else had. */
  stuck: string[]
}

export interface Schedule {
  /** Who is held. */
  first: Role
  /** At which of its points, and what that was called when it ran alone. */
  hold: Hold
  point: string
  /** Whether the agent's calls of the file system count as points. */
  atDisk?: boolean
}

export interface Played extends Outcome {
  schedule: Schedule
  /** The points of both, and at which the first was held; null if it never came so far. */
  points: Record<Role, string[]>
  heldAt: number | null
  second: 'ended' | 'waited for a lock' | 'waited'
}

/**
 * How long the second may be without a step before it is taken to wait for the first: where all that it still has to do
 * is in the queue, and otherwise. Too short only weakens a schedule.
 */
const QUEUED_MS = 25
const STILL_MS = 150
/** The same where it has asked the agent for something and the agent says nothing. */
const ASKING_MS = 400

const nameOf = (pair: Pair, role: Role) => (role === 'A' ? pair.a : pair.b)
const otherOf = (role: Role): Role => (role === 'A' ? 'B' : 'A')

export function operationOf(pair: Pair, role: Role) {
  const operation = OPERATIONS[nameOf(pair, role)]
  if (!operation) throw new Error(`no operation is called ${nameOf(pair, role)}`)
  return operation
}

const sceneFor = (stage: Stage, pair: Pair) =>
  prepare(stage, new Set<Need>([...operationOf(pair, 'A').needs, ...operationOf(pair, 'B').needs]))

function runAs(stage: Stage, scene: Scene, pair: Pair, role: Role): Promise<string> {
  const token = scene.token?.value
  const call: Stage['call'] = (method, path, options) => stage.call(method, path, { token, ...options })
  return operationOf(pair, role).run({ stage, scene, who: role, call })
}

async function outcomeOf(stage: Stage, scene: Scene, answers: Outcome['answers']): Promise<Outcome> {
  const stuck = await settle(stage, scene.serverId)
  return { answers, stuck, state: await observe(stage, scene) }
}

/** One after the other, or only one: the jobs of the first have ended before the second is asked for. */
export async function playInTurn(
  stage: Stage,
  pair: Pair,
  order: readonly Role[],
  atDisk = false,
): Promise<Outcome & { points: Record<Role, string[]> }> {
  const scene = await sceneFor(stage, pair)
  const answers: Outcome['answers'] = { A: null, B: null }
  const points: Record<Role, string[]> = { A: [], B: [] }
  for (const role of order) {
    const actor = new Actor(role, { stopsAtDisk: atDisk })
    answers[role] = await actor.run(() => runAs(stage, scene, pair, role))
    await settle(stage, scene.serverId)
    points[role] = actor.points
    actor.release()
  }
  return { ...(await outcomeOf(stage, scene, answers)), points }
}

/** The second is asked for when the first is answered and its jobs wait, or run. */
export async function playInJobs(stage: Stage, pair: Pair, first: Role, jobs: 'wait' | 'run'): Promise<Outcome> {
  const scene = await sceneFor(stage, pair)
  const leader = new Actor(first, jobs === 'run' ? { hold: { kind: 'agent tasks.start answered', nth: 0 } } : {})
  const follower = new Actor(otherOf(first))
  const led = leader.run(() => runAs(stage, scene, pair, first))
  await led
  if (jobs === 'wait') leader.hold()
  else await Promise.race([leader.held, settle(stage, scene.serverId)])
  const followed = follower.run(() => runAs(stage, scene, pair, otherOf(first)))
  await Promise.race([followed, untilWaiting(stage, { follower, leader, stillAfterMs: async () => STILL_MS })])
  leader.release()
  const answers = { [first]: await led, [follower.name]: await followed } as Outcome['answers']
  const outcome = await outcomeOf(stage, scene, answers)
  follower.release()
  return outcome
}

export async function play(stage: Stage, pair: Pair, schedule: Schedule): Promise<Played> {
  const scene = await sceneFor(stage, pair)
  const { first, hold, atDisk = false } = schedule
  const leader = new Actor(first, { hold, stopsAtDisk: atDisk })
  const follower = new Actor(otherOf(first), { stopsAtDisk: atDisk })
  const led = leader.run(() => runAs(stage, scene, pair, first))
  const isHeld = await Promise.race([leader.held.then(() => true), ended(stage, scene, led, []).then(() => false)])
  const heldAt = isHeld ? leader.points.length - 1 : null
  const known = (await activeJobs(stage, scene.serverId)).map(({ id }) => id)
  const followed = follower.run(() => runAs(stage, scene, pair, follower.name as Role))
  const end = ended(stage, scene, followed, known)
  const stillAfterMs = async () => {
    const { answered } = await Promise.race([followed.then(() => ({ answered: true })), { answered: false }])
    const jobs = (await activeJobs(stage, scene.serverId)).filter(({ id }) => !known.includes(id))
    return answered && jobs.every(({ status }) => status === 'queued') ? QUEUED_MS : STILL_MS
  }
  const waiting = untilWaiting(stage, { follower, leader, stillAfterMs })
  const second = await Promise.race([end.then(() => 'ended' as const), waiting])
  leader.release()
  const answers = { [first]: await led, [follower.name]: await followed } as Outcome['answers']
  const outcome = await outcomeOf(stage, scene, answers)
  follower.release()
  return {
    ...outcome,
    schedule,
    points: { [first]: leader.points, [follower.name]: follower.points } as Played['points'],
    heldAt,
    second,
  }
}

/** When the answer is there and every job that was begun since has ended. */
async function ended(stage: Stage, scene: Scene, answer: Promise<string>, known: readonly string[]): Promise<void> {
  await answer
  while ((await activeJobs(stage, scene.serverId)).some(({ id }) => !known.includes(id))) await delay(3)
}

async function untilWaiting(
  stage: Stage,
  { follower, leader, stillAfterMs }: { follower: Actor; leader: Actor; stillAfterMs: () => Promise<number> },
): Promise<'waited for a lock' | 'waited'> {
  for (;;) {
    await delay(3)
    if (follower.waitsFor === leader) return 'waited for a lock'
    if (await stage.isBlocked(follower.backends)) return 'waited for a lock'
    if (follower.underWay > 0) continue
    const mostMs = follower.asking > 0 ? ASKING_MS : await stillAfterMs()
    if (performance.now() - follower.lastStepAt > mostMs) return 'waited'
  }
}

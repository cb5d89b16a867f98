// Ends what a run has started, directly, by what the kernel knows: a supervisor that hangs or is gone must not keep a game alive.
import { setTimeout as delay } from 'node:timers/promises'
import { fail } from '../../../contract/errors.ts'
import { childrenOf } from '../../../kit/files/kernel-files.ts'
import {
  identify,
  isAlive,
  isAliveOrThrow,
  mayBeAlive,
  type ProcessIdentity,
  signalGroup,
  signalProcess,
} from '../process-identity.ts'
import type { RunEnd } from '../runtime.ts'
import { killGroups } from '../supervisor/cgroup-entry.ts'
import { killAllOf, killLeader, untilGone } from '../supervisor/left-behind.ts'
import type { RunRecord } from '../supervisor/protocol.ts'

const ASK_EVERY_MS = 50
/** A game whose supervisor is gone may still save. */
const SAVES_WITHIN_MS = 10_000
const KILLED_WITHIN_MS = 5000

export async function killRun(recordNow: () => RunRecord): Promise<void> {
  const { game, cgroups, supervisor } = recordNow()
  if (game) signalGroup(game, 'SIGKILL')
  // Where the disk did not take who leads the game, all that its supervisor has started are meant.
  else killBelow(supervisor)
  killGroups(cgroups)
  // It says how the game ended, and then ends itself.
  if (!(await goneWithin(supervisor, KILLED_WITHIN_MS)) && !(game && mayBeAlive(game)))
    signalGroup(supervisor, 'SIGKILL')
}

/** Fails where there is no descriptor left to look with: a game that was not told to save is neither killed nor said to have ended. */
export async function endWithoutSupervisor({ game, cgroups, user = null }: RunRecord): Promise<RunEnd> {
  const kills = [() => killGroups(cgroups)]
  if (game && isAliveOrThrow(game)) {
    signalGroup(game, 'SIGTERM')
    await goneWithin(game, SAVES_WITHIN_MS)
    kills.push(killLeader(game))
  }
  if (user !== null) kills.push(killAllOf(user))
  await untilGone(kills)
  const unknown = { code: null, signal: null, isOutOfMemory: false, wasReady: false, saidStop: false, lastLine: null }
  return { ...unknown, at: Date.now() }
}

/** One that nobody follows any more. Fails with `server_busy` where something of it is still there afterwards. */
export async function endForgotten(record: RunRecord): Promise<void> {
  const { game, supervisor } = record
  if (!game) killBelow(supervisor)
  await endWithoutSupervisor(record)
  if (!(await goneWithin(supervisor, KILLED_WITHIN_MS))) signalGroup(supervisor, 'SIGKILL')
  for (const each of [game, supervisor])
    if (each && !(await goneWithin(each, KILLED_WITHIN_MS)))
      throw fail('server_busy', 'An earlier run of the game has not ended yet, although it was killed. Try again.')
}

/** The innermost first: what bubblewrap has started plays on when bubblewrap itself is killed. */
function killBelow(parent: ProcessIdentity): void {
  if (!isAlive(parent)) return
  for (const child of childrenOf(parent.pid).flatMap((pid) => identify(pid) ?? [])) {
    killBelow(child)
    signalProcess(child, 'SIGKILL')
  }
}

async function goneWithin(identity: ProcessIdentity, ms: number): Promise<boolean> {
  const deadline = performance.now() + ms
  while (mayBeAlive(identity)) {
    if (performance.now() > deadline) return false
    await delay(ASK_EVERY_MS)
  }
  return true
}

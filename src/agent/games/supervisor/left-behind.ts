// What a game has started and left behind, where no control group and no process namespace ends it: all that its user runs,
// which is a user of this game alone, or else those of its group.
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { isOutOfDescriptors } from '../../../kit/files/errno.ts'
import { isAliveOrThrow, type ProcessIdentity, sendSignal, signalGroup, statOrThrow } from '../process-identity.ts'

/** They may start new ones while we look. */
const ROUNDS = 50
const GONE_WITHIN_MS = 5000
const LOOK_EVERY_MS = 5

/** How many were there, all of whom were told to go. Throws where there is no descriptor left to look with. */
export type Kill = () => number

export const killAllOf = (uid: number): Kill => killAll((pid) => ownerOf(pid) === uid)

export const killLeader =
  (leader: ProcessIdentity): Kill =>
  () =>
    isAliveOrThrow(leader) && signalGroup(leader, 'SIGKILL') ? 1 : 0

/** Of a leader that has ended, and whose parent knows how. */
export const killGroupOf = (leader: ProcessIdentity): Kill => {
  const kill = killAll((pid) => {
    const stat = statOrThrow(Number(pid))
    return stat?.group === leader.pid && stat.session === leader.pid
  })
  // Its number is given out again only once nobody is in its group any more: then the group is somebody else's.
  return () => (statOrThrow(leader.pid) ? 0 : kill())
}

/**
 * Resolves once nobody is there any more. Who is killed holds ports and files a little longer, while its memory is freed; one
 * whom the kernel does not let go holds nobody up for ever. Fails where nobody can tell for as long.
 */
export async function untilGone(kills: readonly Kill[]): Promise<void> {
  const deadline = performance.now() + GONE_WITHIN_MS
  const isOver = () => performance.now() >= deadline
  const mayBeLeft = () => {
    try {
      return kills.reduce((count, kill) => count + kill(), 0) > 0
    } catch (error) {
      if (isOver() || !isOutOfDescriptors(error)) throw error
      return true
    }
  }
  while (mayBeLeft() && !isOver()) await delay(LOOK_EVERY_MS)
}

const killAll =
  (isMeant: (pid: string) => boolean): Kill =>
  () => {
    let count = killOnce(isMeant)
    for (let round = 1; round < ROUNDS && count > 0; round++) count = killOnce(isMeant)
    return count
  }

function killOnce(isMeant: (pid: string) => boolean): number {
  let count = 0
  for (const name of readdirSync('/proc')) {
    if (/^\d+$/.test(name) && isMeant(name) && sendSignal(Number(name), 'SIGKILL')) count++
  }
  return count
}

/** Undefined for one that is gone, or has ended and waits to be asked how. */
function ownerOf(pid: string): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    if (/^State:\s+[ZX]/m.test(status)) return undefined
    return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1])
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error
    return undefined
  }
}

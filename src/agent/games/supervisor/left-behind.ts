// What a game has started and left behind, where no control group and no process namespace ends it: all that its user runs,
// which is a user of this game alone, or else those of its group.
import { readdirSync, readFileSync } from 'node:fs'
import { type ProcessIdentity, statOf } from '../process-identity.ts'

/** They may start new ones while we look. */
const ROUNDS = 50

export const killAllOf = (uid: number): void => killAll((pid) => ownerOf(pid) === uid)

/** Of a leader that has ended, and whose parent knows how. */
export function killGroupOf(leader: ProcessIdentity): void {
  // Its number is given out again only once nobody is in its group any more: then the group is somebody else's.
  if (statOf(leader.pid)) return
  killAll((pid) => {
    const stat = statOf(Number(pid))
    return stat?.group === leader.pid && stat.session === leader.pid
  })
}

function killAll(isMeant: (pid: string) => boolean): void {
  for (let round = 0; round < ROUNDS && killOnce(isMeant) > 0; round++);
}

function killOnce(isMeant: (pid: string) => boolean): number {
  let count = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || !isMeant(name)) continue
    try {
      process.kill(Number(name), 'SIGKILL')
      count++
    } catch {
      // It has ended meanwhile.
    }
  }
  return count
}

/** Undefined for one that is gone, or has ended and waits to be asked how. */
function ownerOf(pid: string): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    if (/^State:\s+[ZX]/m.test(status)) return undefined
    return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1])
  } catch {
    return undefined
  }
}

// What a game has started and left behind, where no control group and no process namespace ends it: all that its user runs,
// which is a user of this game alone.
import { readdirSync, readFileSync } from 'node:fs'

/** It may start new ones while we look. */
const ROUNDS = 50

export function killAllOf(uid: number): void {
  for (let round = 0; round < ROUNDS && killOnce(uid) > 0; round++);
}

function killOnce(uid: number): number {
  let count = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || ownerOf(name) !== uid) continue
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

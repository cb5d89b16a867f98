// A control group holds whatever is started by those in it. So the supervisor enters the groups of the game, starts it, and
// leaves: the game is in them from its first instruction on, and the supervisor is not ended by their limits.
import { rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasCode } from '../../../kit/files/errno.ts'
import { readIfThere } from '../../../kit/files/kernel-files.ts'
import { sendSignal } from '../process-identity.ts'
import type { GroupFolder } from './protocol.ts'

/** The kernel takes ten milliseconds for the first: before there is anything to start. */
export function enterGroups(groups: readonly GroupFolder[]): void {
  for (const { folder } of groups) move(folder)
}

export function leaveGroups(groups: readonly GroupFolder[]): void {
  for (const { leaveTo } of groups) move(leaveTo)
}

/** Of a game that is not started after all. */
export function dropGroups(groups: readonly GroupFolder[]): void {
  leaveGroups(groups)
  // Where it fails, whoever made it removes it too, unless it has ended.
  for (const { folder } of groups) removeGroup(folder)
}

/** False while something in it still ends. */
export function removeGroup(folder: string): boolean {
  try {
    rmdirSync(folder)
    return true
  } catch (error) {
    return hasCode(error, 'ENOENT')
  }
}

const move = (group: string) => writeFileSync(join(group, 'cgroup.procs'), String(process.pid))

/** How many processes of the groups the kernel has ended for want of memory. */
export function countOutOfMemory(groups: readonly GroupFolder[]): number {
  let count = 0
  for (const { folder } of groups) {
    for (const file of ['memory.oom_control', 'memory.events']) {
      count += Number(/^oom_kill (\d+)/m.exec(readIfThere(join(folder, file)))?.[1] ?? 0)
    }
  }
  return count
}

/** Whatever the game has started and left behind. How many were there. */
export function killGroups(groups: readonly GroupFolder[]): number {
  let count = 0
  for (const { folder } of groups) {
    for (const pid of readIfThere(join(folder, 'cgroup.procs')).split('\n').filter(Boolean)) {
      if (Number(pid) !== process.pid && sendSignal(Number(pid), 'SIGKILL')) count++
    }
  }
  return count
}

// Which process a number means. The kernel gives numbers out again, so a process is known by its number, the time at which
// it started, and the boot that both belong to: nothing else is ever sent a signal.
import { readFileSync } from 'node:fs'
import { hasCode } from '../../kit/files/errno.ts'
import { statFields, statFieldsOrThrow } from '../../kit/files/kernel-files.ts'

export interface ProcessIdentity {
  pid: number
  /** In ticks since the boot, as the kernel writes it. */
  startTime: string
  bootId: string
}

let ownBoot: string | undefined
export const bootId = (): string => (ownBoot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())

export interface ProcessStat {
  /** Of its group and its session: the number of the process that made it. */
  group: number
  session: number
  startTime: string
}

/** Undefined where there is no such process, or only what it leaves until its parent has asked how it ended. */
function statFrom(fields: readonly string[]): ProcessStat | undefined {
  if (fields.length === 0 || fields[0] === 'Z' || fields[0] === 'X') return undefined
  return { group: Number(fields[2]), session: Number(fields[3]), startTime: fields[19] as string }
}

/** Undefined also where there is no descriptor left to look with. */
const statOf = (pid: number) => statFrom(statFields(pid))

/** Throws where there is no descriptor left to look with. */
export const statOrThrow = (pid: number): ProcessStat | undefined => statFrom(statFieldsOrThrow(pid))

export function identify(pid: number): ProcessIdentity | undefined {
  const stat = statOf(pid)
  return stat && { pid, startTime: stat.startTime, bootId: bootId() }
}

/** For whoever sends signals, or reads by the number: false also where there is no descriptor left to look with. */
export const isAlive = (identity: ProcessIdentity): boolean =>
  identity.bootId === bootId() && statOf(identity.pid)?.startTime === identity.startTime

/** For whoever can try again: throws where there is no descriptor left to look with. */
export const isAliveOrThrow = (identity: ProcessIdentity): boolean =>
  identity.bootId === bootId() && statOrThrow(identity.pid)?.startTime === identity.startTime

/** For whoever decides that it has ended: where there is no descriptor left to look with, anybody who has the number counts. */
export function mayBeAlive(identity: ProcessIdentity): boolean {
  try {
    return isAliveOrThrow(identity)
  } catch {
    return isTaken(identity.pid)
  }
}

function isTaken(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return hasCode(error, 'EPERM')
  }
}

/** To the process and its whole group, which has its number. False where it is gone, or another has the number now. */
export function signalGroup(leader: ProcessIdentity, signal: NodeJS.Signals): boolean {
  return isAlive(leader) && sendSignal(-leader.pid, signal)
}

/** To the process alone. False where it is gone, or another has the number now. */
export function signalProcess(target: ProcessIdentity, signal: NodeJS.Signals): boolean {
  return isAlive(target) && sendSignal(target.pid, signal)
}

/** To whoever has the number now, for those who have just looked. False where it has ended since. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch {
    return false
  }
}

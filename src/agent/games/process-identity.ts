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
export function statOf(pid: number, read = statFields): ProcessStat | undefined {
  const fields = read(pid)
  if (fields.length === 0 || fields[0] === 'Z' || fields[0] === 'X') return undefined
  return { group: Number(fields[2]), session: Number(fields[3]), startTime: fields[19] as string }
}

const startTimeOf = (pid: number, read = statFields) => statOf(pid, read)?.startTime

export function identify(pid: number): ProcessIdentity | undefined {
  const startTime = startTimeOf(pid)
  return startTime === undefined ? undefined : { pid, startTime, bootId: bootId() }
}

/**
 * Where there is no descriptor to look who has the number, whoever has it counts: a game that runs must not pass for one that has
 * ended.
 */
export function isAlive(process: ProcessIdentity): boolean {
  if (process.bootId !== bootId()) return false
  try {
    return startTimeOf(process.pid, statFieldsOrThrow) === process.startTime
  } catch {
    return isTaken(process.pid)
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

/** Only where it is sure who has the number. */
const isSurelyAlive = ({ bootId: boot, pid, startTime }: ProcessIdentity) =>
  boot === bootId() && startTimeOf(pid) === startTime

/** To the process and its whole group, which has its number. False where it is gone, or another has the number now. */
export function signalGroup(leader: ProcessIdentity, signal: NodeJS.Signals): boolean {
  return isSurelyAlive(leader) && sendSignal(-leader.pid, signal)
}

/** To the process alone. False where it is gone, or another has the number now. */
export function signalProcess(target: ProcessIdentity, signal: NodeJS.Signals): boolean {
  return isSurelyAlive(target) && sendSignal(target.pid, signal)
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

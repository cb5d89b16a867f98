// Which process leads the group of a game in a container: its first one, or, behind an init of the engine's, the child of that,
// which has a group of its own. A signal to the group of the init would end a shell that waits for the game.
import { type BigIntStats, readFileSync, statSync } from 'node:fs'
import { readIfThere } from '../../../kit/kernel-files.ts'
import { identify, type ProcessIdentity, statOf } from '../process-identity.ts'
import type { ContainerState } from './engine.ts'

/** Undefined where the engine's processes are not those that we see: a number of another machine means nothing here. */
export function leaderOf({ id, pid, hasInit }: ContainerState): ProcessIdentity | 'none yet' | undefined {
  if (pid <= 0) return undefined
  try {
    if (!readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(id)) return undefined
    const leader = hasInit ? leaderBehind(pid) : pid
    return leader === 'none yet' ? leader : identify(leader)
  } catch {
    return undefined
  }
}

/** The init itself where it does not give the game a group. */
export function leaderBehind(init: number): number | 'none yet' {
  const [child] = readFileSync(`/proc/${init}/task/${init}/children`, 'utf8').trim().split(' ')
  // A child that is still the init's program has not become the game yet, nor got its group.
  if (!child || isSameProgram(child, init)) return 'none yet'
  const group = statOf(Number(child))?.group
  return group === Number(child) ? group : init
}

/** By its name, which is the game's to choose, only where the kernel shows us no more. */
function isSameProgram(child: string, init: number): boolean {
  const [one, other] = [programOf(child), programOf(init)]
  return one && other ? one.dev === other.dev && one.ino === other.ino : nameOf(child) === nameOf(init)
}

function programOf(pid: number | string): BigIntStats | undefined {
  try {
    return statSync(`/proc/${pid}/exe`, { bigint: true })
  } catch {
    return undefined
  }
}

const nameOf = (pid: number | string) => readIfThere(`/proc/${pid}/comm`)

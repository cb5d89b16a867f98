// Which process leads the group of a game in a container: its first one, or, behind an init of the engine's, the child of that,
// which has a group of its own. A signal to the group of the init would end a shell that waits for the game.
import { readFileSync } from 'node:fs'
import { readIfThere } from '../../../kit/files/kernel-files.ts'
import { identify, type ProcessIdentity, statOrThrow } from '../process-identity.ts'
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
  // A child that is still called as the init is has not become the game yet, nor got its group.
  if (!child || nameOf(child) === nameOf(init)) return 'none yet'
  const group = statOrThrow(Number(child))?.group
  return group === Number(child) ? group : init
}

const nameOf = (pid: number | string) => readIfThere(`/proc/${pid}/comm`)

// Which process leads the group of a game in a container: its first one, or, behind an init of the engine's, the child of that,
// which has a group of its own. A signal to the group of the init would end a shell that waits for the game.
import { readFileSync } from 'node:fs'
import { identify, type ProcessIdentity } from '../process-identity.ts'
import type { ContainerState } from './engine.ts'

/** Undefined where the engine's processes are not those that we see: a number of another machine means nothing here. */
export function leaderOf({ id, pid, hasInit }: ContainerState): ProcessIdentity | undefined {
  if (pid <= 0) return undefined
  try {
    if (!readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(id)) return undefined
    return identify(hasInit ? leaderBehind(pid) : pid)
  } catch {
    return undefined
  }
}

/** The init itself where it has not started the game yet, or does not give it a group. */
export function leaderBehind(init: number): number {
  const [child] = readFileSync(`/proc/${init}/task/${init}/children`, 'utf8').trim().split(' ')
  if (!child) return init
  const stat = readFileSync(`/proc/${child}/stat`, 'latin1')
  const [, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return group === child ? Number(child) : init
}

// Control groups of games: what the kernel holds all processes of a game to, together. Both versions of them, since machines
// have either; where the service may make none, there is none.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { GameLimits } from '../../../contract/agent/agent-games.ts'
import { DEFAULT_PROCESSES_MAX } from '../../../contract/fixed-limits.ts'
import { readIfThere } from '../../../kit/files/kernel-files.ts'
import { removeGroup } from '../supervisor/cgroup-entry.ts'
import type { GroupFolder } from '../supervisor/protocol.ts'

export type Controller = 'memory' | 'cpu' | 'pids'
const CONTROLLERS: readonly Controller[] = ['memory', 'cpu', 'pids']
const REMOVAL_ATTEMPTS = 40
const RETRY_MS = 50
const PERIOD_US = 100_000

/** Where the unit of the service has systemd put it: the group above is ours to give controllers out of, and has no processes. */
export const OWN_SUBGROUP = 'gamekeeper'
/** All games the same, so that none starves another, and less than the service, which answers for all of them. */
const WEIGHTS = { 1: { file: 'cpu.shares', game: '256' }, 2: { file: 'cpu.weight', game: '100', service: '1000' } }

export interface GameGroups {
  folders: GroupFolder[]
  controllers: ReadonlySet<Controller>
}

/** What is written where, to hold a group to its limits. */
function settingsOf(version: 1 | 2, controller: Controller, limits: GameLimits): [file: string, value: string][] {
  const { memoryBytes, cpuPercent, processes } = limits
  const quotaUs = cpuPercent === null ? null : Math.max(1000, (cpuPercent * PERIOD_US) / 100)
  if (controller === 'pids') return [['pids.max', String(processes ?? DEFAULT_PROCESSES_MAX)]]
  if (controller === 'memory') {
    if (memoryBytes === null) return []
    return [[version === 1 ? 'memory.limit_in_bytes' : 'memory.max', String(memoryBytes)]]
  }
  const { file, game } = WEIGHTS[version]
  if (quotaUs === null) return [[file, game]]
  if (version === 2)
    return [
      [file, game],
      ['cpu.max', `${quotaUs} ${PERIOD_US}`],
    ]
  return [
    [file, game],
    ['cpu.cfs_period_us', String(PERIOD_US)],
    ['cpu.cfs_quota_us', String(quotaUs)],
  ]
}

/** What the kernel says of the groups of this process. */
export interface OwnGroups {
  /** As `/proc/self/cgroup`. */
  text: string
  mounts: Mounts
}

const readOwnGroups = (): OwnGroups => ({ text: readFileSync('/proc/self/cgroup', 'utf8'), mounts: readMounts() })

/** A fresh group of each kind that can be made, with its limits set. */
export function makeGroups(runId: string, limits: GameLimits, own: OwnGroups = readOwnGroups()): GameGroups {
  const folders: GroupFolder[] = []
  const controllers = new Set<Controller>()
  for (const parent of parentsOf(own)) {
    // One is enough of each.
    if (parent.names.every((name) => controllers.has(name))) continue
    const folder = join(parent.folder, `gamekeeper-${runId}`)
    if (!makeGroup(folder, parent, limits)) continue
    folders.push({ folder, leaveTo: parent.own })
    for (const name of parent.names) controllers.add(name)
  }
  return { folders, controllers }
}

function makeGroup(folder: string, { version, names }: Parent, limits: GameLimits): boolean {
  try {
    mkdirSync(folder)
    for (const name of names)
      for (const [file, value] of settingsOf(version, name, limits)) writeFileSync(join(folder, file), value)
    return true
  } catch {
    // Not ours to make here, or not with this limit: the limit is held in another way, or not, and said so.
    removeGroup(folder)
    return false
  }
}

/** What was killed a moment ago is in them until the kernel is done with it. */
export async function removeGroups(groups: readonly GroupFolder[]): Promise<void> {
  for (const { folder } of groups)
    for (let attempt = 1; attempt <= REMOVAL_ATTEMPTS && !removeGroup(folder); attempt++) await delay(RETRY_MS)
}

interface Parent {
  version: 1 | 2
  /** Where groups of games are made. */
  folder: string
  /** The group that the service itself is in. */
  own: string
  names: Controller[]
}

export interface Mounts {
  v1: Map<Controller, string>
  v2: string | undefined
}

function readMounts(): Mounts {
  const v1 = new Map<Controller, string>()
  let v2: string | undefined
  for (const line of readFileSync('/proc/self/mounts', 'utf8').split('\n')) {
    const [, path = '', type, options = ''] = line.split(' ')
    if (type === 'cgroup2') v2 = path
    if (type !== 'cgroup') continue
    for (const name of CONTROLLERS) if (options.split(',').includes(name)) v1.set(name, path)
  }
  return { v1, v2 }
}

/** The folders of the control groups that a process is in, whoever made them. */
export function groupFoldersOf(pid: number): string[] {
  const { v1, v2 } = readMounts()
  return readFileSync(`/proc/${pid}/cgroup`, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, controllers = '', ...path] = line.split(':')
      const named = CONTROLLERS.filter((name) => controllers.split(',').includes(name)).map((name) => v1.get(name))
      const mounts = controllers === '' ? [v2] : named
      return mounts.flatMap((mount) => (mount === undefined ? [] : [join(mount, path.join(':'))]))
    })
    .filter((folder) => existsSync(join(folder, 'cgroup.procs')))
}

function parentsOf({ text, mounts }: OwnGroups): Parent[] {
  const parents: Parent[] = []
  for (const line of text.split('\n').filter(Boolean)) {
    const [, controllers = '', ...path] = line.split(':')
    for (const name of CONTROLLERS.filter((each) => controllers.split(',').includes(each))) {
      const mount = mounts.v1.get(name)
      if (mount === undefined) continue
      const own = visibleGroup(mount, path.join(':'))
      parents.push({ version: 1, folder: own, own, names: [name] })
    }
    if (controllers === '' && mounts.v2 !== undefined)
      parents.push(...unifiedParents(mounts.v2, visibleGroup(mounts.v2, path.join(':'))))
  }
  return parents
}

/** In a container the path may be that of the machine, while only a part of it is mounted. */
const visibleGroup = (mount: string, path: string) =>
  existsSync(join(mount, path, 'cgroup.procs')) ? join(mount, path) : mount

/**
 * A group with processes in it gives no controllers to groups below it. So games are beside the service, where the group above
 * has controllers to give. That of our own unit gives what it has; into that of somebody else nothing is written.
 */
function unifiedParents(mount: string, own: string): Parent[] {
  const folders = own === mount ? [own] : [dirname(own), own]
  if (basename(own) === OWN_SUBGROUP) delegate(own)
  return folders.flatMap((folder) => {
    const names = controllersIn(join(folder, 'cgroup.subtree_control'))
    return names.length > 0 ? [{ version: 2 as const, folder, own, names }] : []
  })
}

function delegate(own: string): void {
  const control = join(dirname(own), 'cgroup.subtree_control')
  const given = controllersIn(control)
  for (const name of controllersIn(join(dirname(own), 'cgroup.controllers')))
    if (!given.includes(name)) attempt(() => writeFileSync(control, `+${name}`, { flag: 'a' }))
  attempt(() => writeFileSync(join(own, WEIGHTS[2].file), WEIGHTS[2].service))
}

function attempt(work: () => void): void {
  try {
    work()
  } catch {
    // What it was for is then not enforced, and said so.
  }
}

function controllersIn(file: string): Controller[] {
  const given = readIfThere(file).split(/[\s+]+/)
  return CONTROLLERS.filter((name) => given.includes(name))
}

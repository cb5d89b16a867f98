// What a game uses, as the kernel counts it: by its control groups where it has them, else process by process. Reads files that
// the kernel makes as they are read, so nothing waits for a disk and no process is started.
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { readIfThere, statFields } from '../../kit/files/kernel-files.ts'

export interface RunUsage {
  /** Since it was started. */
  cpuSeconds: number | null
  memoryBytes: number | null
  /** Since it was started; null where it shares the network of the machine, which does not tell whose bytes they are. */
  networkReceivedBytes: number | null
  networkSentBytes: number | null
}

export const NO_USAGE: RunUsage = {
  cpuSeconds: null,
  memoryBytes: null,
  networkReceivedBytes: null,
  networkSentBytes: null,
}

const TICKS_PER_SECOND = 100
/** Of a game in no control group; one that forks without end does not make us count without end. */
const PROCESSES_MAX = 512

/** `groups`: the folders of the control groups that hold it and nothing else. */
export function readRunUsage(pid: number, groups: readonly string[]): RunUsage {
  const cpuSeconds = firstOf(groups, groupCpuSeconds)
  const memoryBytes = firstOf(groups, groupMemoryBytes)
  const counted =
    cpuSeconds === null || memoryBytes === null ? sumOf(firstOf(groups, groupPids) ?? descendants(pid)) : undefined
  return {
    cpuSeconds: cpuSeconds ?? counted?.cpuSeconds ?? null,
    memoryBytes: memoryBytes ?? counted?.memoryBytes ?? null,
    ...readNetwork(pid),
  }
}

function firstOf<T>(groups: readonly string[], read: (folder: string) => T | null): T | null {
  for (const folder of groups) {
    const found = read(folder)
    if (found !== null) return found
  }
  return null
}

function groupCpuSeconds(folder: string): number | null {
  const [, microseconds] = /^usage_usec (\d+)$/m.exec(readIfThere(join(folder, 'cpu.stat'))) ?? []
  if (microseconds !== undefined) return Number(microseconds) / 1e6
  const nanoseconds = readIfThere(join(folder, 'cpuacct.usage'))
  return nanoseconds === '' ? null : Number(nanoseconds) / 1e9
}

/** Without what the kernel keeps of files and gives up as soon as anybody needs the room. */
function groupMemoryBytes(folder: string): number | null {
  for (const [file, idle] of [
    ['memory.current', /^inactive_file (\d+)$/m],
    ['memory.usage_in_bytes', /^total_inactive_file (\d+)$/m],
  ] as const) {
    const used = readIfThere(join(folder, file))
    if (used === '') continue
    const [, idleBytes = '0'] = idle.exec(readIfThere(join(folder, 'memory.stat'))) ?? []
    return Math.max(0, Number(used) - Number(idleBytes))
  }
  return null
}

function groupPids(folder: string): number[] | null {
  const pids = readIfThere(join(folder, 'cgroup.procs')).split('\n').filter(Boolean)
  return pids.length === 0 ? null : pids.slice(0, PROCESSES_MAX).map(Number)
}

/** The process and all that it has started, by who started whom. */
function descendants(root: number): number[] {
  const children = childrenByParent()
  const found = [root]
  for (let at = 0; at < found.length && found.length < PROCESSES_MAX; at++)
    found.push(...(children.get(found[at] as number) ?? []))
  return found.slice(0, PROCESSES_MAX)
}

/** Games that are measured one after the other share one look at all processes. */
const TABLE_COUNTS_MS = 1000
let table = new Map<number, number[]>()
let tableMadeAt = Number.NEGATIVE_INFINITY

function childrenByParent(): ReadonlyMap<number, readonly number[]> {
  if (performance.now() - tableMadeAt < TABLE_COUNTS_MS) return table
  table = new Map()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const parent = Number(statFields(Number(name))[PARENT])
    const known = table.get(parent)
    if (known) known.push(Number(name))
    else table.set(parent, [Number(name)])
  }
  tableMadeAt = performance.now()
  return table
}

/** Of the fields of `statFields`. */
const PARENT = 1
/** Its own time in user mode and in the kernel, and that of children which have ended. */
const TIMES = [11, 12, 13, 14]

function sumOf(pids: readonly number[]): { cpuSeconds: number; memoryBytes: number } {
  let ticks = 0
  let kib = 0
  for (const pid of pids) {
    const fields = statFields(pid)
    if (fields.length < TIMES.length) continue
    for (const field of TIMES) ticks += Number(fields[field])
    kib += Number(/^VmRSS:\s+(\d+) kB$/m.exec(readIfThere(`/proc/${pid}/status`))?.[1] ?? 0)
  }
  return { cpuSeconds: ticks / TICKS_PER_SECOND, memoryBytes: kib * 1024 }
}

type Network = Pick<RunUsage, 'networkReceivedBytes' | 'networkSentBytes'>
const UNTOLD: Network = { networkReceivedBytes: null, networkSentBytes: null }

/** Only a game with a network of its own has counters of its own. */
function readNetwork(pid: number): Network {
  const [own, its] = [networkOf('self'), networkOf(pid)]
  if (own === null || its === null || own === its) return UNTOLD
  let [received, sent] = [0, 0]
  for (const line of readIfThere(`/proc/${pid}/net/dev`).split('\n').slice(2)) {
    const [name = '', ...counts] = line.trim().split(/[\s:]+/)
    if (name === '' || name === 'lo') continue
    received += Number(counts[0])
    sent += Number(counts[8])
  }
  return { networkReceivedBytes: received, networkSentBytes: sent }
}

function networkOf(pid: number | 'self'): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`)
  } catch {
    return null
  }
}

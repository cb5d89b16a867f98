// What others do with the same tree: restic, rustic, borg and tar, as a user calls them.
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { runMeasured } from './run-measured.ts'

export const LINES = [
  'first',
  'firstBytes',
  'unchanged',
  'changed',
  'changedBytes',
  'restore',
  'restoreOver',
  'memory',
] as const
/** In each round, by all that are measured: it takes so little time that what else happens tells. */
export const UNCHANGED_RUNS = 3
export type Line = (typeof LINES)[number]
/** Seconds; of `firstBytes`, `changedBytes` and `memory`, the most that a process had, bytes. */
export type Times = Partial<Record<Line, number[]>>

export const TITLES: Record<Line, string> = {
  first: 'first backup',
  firstBytes: 'first backup: size of the store',
  unchanged: 'nothing changed',
  changed: 'changed in place',
  changedBytes: 'changed in place: added to the store',
  restore: 'full restore',
  restoreOver: 'restore over a tree in which 1 % has changed',
  memory: 'peak memory',
}

const SMALL_BYTES = 1024 * 1024

export interface Place {
  /** For this round alone. */
  base: string
  /** The server's files; the same for every tool. */
  tree: string
  /** Changes of the same kind for every tool and round; what the one before it wrote is part of the tree by then. */
  change(folder: string): void
}

/** Warm, a program has done each step before the one that counts, so nothing is left to compile. Cold, it is started for each. */
export type Warmth = 'warm' | 'cold'

export interface Tool {
  name: string
  round(place: Place, times: Times): Promise<void>
}

const timed = (times: Times, line: Line, work: () => unknown) => {
  const begun = performance.now()
  work()
  record(times, line, (performance.now() - begun) / 1000)
}

export function record(times: Times, line: Line, value: number): void {
  times[line] = [...(times[line] ?? []), value]
}

export function sizeOf(folder: string): number {
  return filesUnder(folder).reduce((sum, path) => sum + statSync(path).size, 0)
}

/**
 * Gives the space back, and leaves small files for the end: a file system may be slow to make files within a minute after
 * many were deleted, which would be charged to whoever comes next.
 */
export function discard(...folders: string[]): void {
  for (const path of folders.flatMap(filesUnder)) if (statSync(path).size > SMALL_BYTES) rmSync(path)
}

/** One for all: fresh memory for each file would be garbage for whoever measures next. */
const heated = Buffer.alloc(1024 * 1024)

/** Reads everything once, so that nobody waits for the disk. */
export function heat(folder: string): void {
  for (const path of filesUnder(folder)) {
    const fd = openSync(path, 'r')
    while (readSync(fd, heated) > 0);
    closeSync(fd)
  }
  execFileSync('sync')
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

/** An empty repository, and how restic is called on it. */
export function initRestic(base: string) {
  const repository = join(base, 'restic')
  const env = { ...process.env, RESTIC_PASSWORD: 'bench', RESTIC_CACHE_DIR: join(base, 'restic-cache') }
  const command = (...args: string[]) => execFileSync('restic', ['-q', '-r', repository, ...args], { env })
  command('init')
  return { repository, command }
}

/** Tools that keep blocks in a repository, as they are called for each step. */
interface Commands {
  repository: string
  restored: string
  env?: Record<string, string>
  init: string[]
  backUp(): string[]
  restore: string[]
  /** Where both are called. */
  backUpIn?: string
  restoreIn?: string
}

async function roundOf(place: Place, times: Times, commands: Commands): Promise<void> {
  const { repository, restored, env = {} } = commands
  let peak = 0
  const step = async (line: Line | undefined, command: string[], cwd = place.base) => {
    const ran = await runMeasured(command, { cwd, env: { ...process.env, ...env } })
    peak = Math.max(peak, ran.peakBytes)
    if (line) record(times, line, ran.seconds)
  }
  await step(undefined, commands.init)
  await step('first', commands.backUp(), commands.backUpIn)
  record(times, 'firstBytes', sizeOf(repository))
  for (let count = 0; count < UNCHANGED_RUNS; count++) await step('unchanged', commands.backUp(), commands.backUpIn)
  place.change(place.tree)
  const before = sizeOf(repository)
  await step('changed', commands.backUp(), commands.backUpIn)
  record(times, 'changedBytes', sizeOf(repository) - before)
  mkdirSync(restored)
  heat(repository)
  await step('restore', commands.restore, commands.restoreIn)
  record(times, 'memory', peak)
  discard(repository, restored)
}

export const restic: Tool = {
  name: 'restic',
  async round(place, times) {
    const [repository, restored] = [join(place.base, 'restic'), join(place.base, 'restic-restored')]
    const restic = (...args: string[]) => ['restic', '-q', '-r', repository, ...args]
    await roundOf(place, times, {
      repository,
      restored,
      env: { RESTIC_PASSWORD: 'bench', RESTIC_CACHE_DIR: join(place.base, 'restic-cache') },
      init: restic('init'),
      backUp: () => restic('backup', place.tree),
      restore: restic('restore', 'latest', '--target', restored),
    })
  },
}

export const rustic: Tool = {
  name: 'rustic',
  async round(place, times) {
    const [repository, restored] = [join(place.base, 'rustic'), join(place.base, 'rustic-restored')]
    const options = ['-r', repository, '--password', 'bench', '--cache-dir', join(place.base, 'rustic-cache')]
    const rustic = (...args: string[]) => ['rustic', '--no-progress', '--log-level', 'error', ...options, ...args]
    await roundOf(place, times, {
      repository,
      restored,
      init: rustic('init'),
      backUp: () => rustic('backup', place.tree),
      restore: rustic('restore', `latest:${place.tree}`, restored),
    })
  },
}

export const borg: Tool = {
  name: 'borg',
  async round(place, times) {
    const [repository, restored] = [join(place.base, 'borg'), join(place.base, 'borg-restored')]
    let made = 0
    await roundOf(place, times, {
      repository,
      restored,
      env: { BORG_BASE_DIR: join(place.base, 'borg-home'), BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK: 'yes' },
      init: ['borg', 'init', '-e', 'none', repository],
      backUp: () => ['borg', 'create', `${repository}::${++made}`, '.'],
      backUpIn: place.tree,
      restore: ['borg', 'extract', `${repository}::${UNCHANGED_RUNS + 2}`],
      restoreIn: restored,
    })
  },
}

export function tar(name: string, packer: string): Tool {
  return {
    name,
    async round(place, times) {
      const archive = join(place.base, 'archive')
      const pack = () => execFileSync('sh', ['-c', `tar -C "$1" -cf - . | ${packer} > "$2"`, 'sh', place.tree, archive])
      timed(times, 'first', pack)
      rmSync(archive)
    },
  }
}

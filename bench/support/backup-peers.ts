// What others do with the same tree: restic, borg and tar, as a user calls them.
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

export const LINES = ['first', 'unchanged', 'changed', 'changedBytes', 'restore', 'restoreOver'] as const
/** In each round, by all that are measured: it takes so little time that what else happens tells. */
export const UNCHANGED_RUNS = 3
export type Line = (typeof LINES)[number]
export type Times = Partial<Record<Line, number[]>>

const SMALL_BYTES = 1024 * 1024

export interface Place {
  /** For this round alone. */
  base: string
  /** The server's files; the same for every tool. */
  tree: string
  /** Changes of the same kind for every tool and round; what the one before it wrote is part of the tree by then. */
  change(folder: string): void
}

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

export const restic: Tool = {
  name: 'restic',
  async round(place, times) {
    const { repository, command } = initRestic(place.base)
    const restored = join(place.base, 'restic-restored')
    timed(times, 'first', () => command('backup', place.tree))
    for (let count = 0; count < UNCHANGED_RUNS; count++) timed(times, 'unchanged', () => command('backup', place.tree))
    place.change(place.tree)
    const before = sizeOf(repository)
    timed(times, 'changed', () => command('backup', place.tree))
    record(times, 'changedBytes', sizeOf(repository) - before)
    heat(repository)
    timed(times, 'restore', () => command('restore', 'latest', '--target', restored))
    discard(repository, restored)
  },
}

export const borg: Tool = {
  name: 'borg',
  async round(place, times) {
    const repository = join(place.base, 'borg')
    const restored = join(place.base, 'borg-restored')
    const command = (cwd: string, ...args: string[]) =>
      execFileSync('borg', args, {
        cwd,
        env: {
          ...process.env,
          BORG_BASE_DIR: join(place.base, 'borg-home'),
          BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK: 'yes',
        },
      })
    command(place.base, 'init', '-e', 'none', repository)
    timed(times, 'first', () => command(place.tree, 'create', `${repository}::first`, '.'))
    for (let count = 0; count < UNCHANGED_RUNS; count++)
      timed(times, 'unchanged', () => command(place.tree, 'create', `${repository}::unchanged-${count}`, '.'))
    place.change(place.tree)
    const before = sizeOf(repository)
    timed(times, 'changed', () => command(place.tree, 'create', `${repository}::changed`, '.'))
    record(times, 'changedBytes', sizeOf(repository) - before)
    mkdirSync(restored)
    heat(repository)
    timed(times, 'restore', () => command(restored, 'extract', `${repository}::changed`))
    discard(repository, restored)
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

// Backups against restic, borg and tar, on a Minecraft-like server of about 1.9 GB, hot cache, medians of three rounds.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { startAgent } from '../src/agent/backups/backups.testing.ts'
import { changeInPlace, MINECRAFT, makeTree, type TreeShape } from './game-tree.ts'

const ROUNDS = Number(process.env.GAMEKEEPER_BENCH_ROUNDS ?? 3)
const LINES = ['first', 'unchanged', 'changed', 'changedBytes', 'restore', 'restoreOver'] as const
type Line = (typeof LINES)[number]
type Times = Partial<Record<Line, number[]>>

interface Tool {
  name: string
  round(place: Place, times: Times): Promise<void>
}

interface Place {
  base: string
  /** The server's files; the same for every tool. */
  tree: string
  round: number
}

export interface BackupFigures {
  medians: Record<string, Partial<Record<Line, number>>>
  ratios: Record<string, { value: number; atLeast?: number; atMost?: number }>
}

export async function run(
  shape: TreeShape = MINECRAFT,
  say: (line: string) => void = console.log,
): Promise<BackupFigures> {
  const base = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
  const times: Record<string, Times> = {}
  try {
    const tree = join(base, 'data/servers/srv_bench/files')
    makeTree(tree, shape)
    for (let round = 0; round < ROUNDS; round++) {
      for (const tool of [
        ours,
        restic,
        borg,
        tar('tar | pigz -1', 'pigz -1'),
        tar('tar | zstd -3 -T2', 'zstd -3 -T2 -q'),
      ]) {
        heat(tree)
        const own = times[tool.name] ?? {}
        times[tool.name] = own
        await tool.round({ base, tree, round }, own)
        say(
          `round ${round + 1}, ${tool.name}: ${LINES.filter((line) => own[line])
            .map((line) => `${line} ${format(line, own[line]?.at(-1) ?? 0)}`)
            .join(', ')}`,
        )
      }
    }
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
  const medians = Object.fromEntries(Object.entries(times).map(([name, own]) => [name, mediansOf(own)]))
  const figures = { medians, ratios: ratiosOf(medians) }
  print(figures, say)
  return figures
}

const timed = async (times: Times, line: Line, work: () => unknown) => {
  const begun = performance.now()
  await work()
  record(times, line, (performance.now() - begun) / 1000)
}

function record(times: Times, line: Line, value: number): void {
  times[line] = [...(times[line] ?? []), value]
}

/** New changes for every tool and round, of the same kind: what the one before it wrote is part of the tree by then. */
let changes = 0
const change = ({ tree }: Place) => changeInPlace(tree, undefined, 100 + changes++)

const settled = () => new Promise((resolve) => setTimeout(resolve, 1100))

const ours: Tool = {
  name: 'gamekeeper',
  async round(place, times) {
    const dataDir = join(place.base, 'data')
    rmSync(join(dataDir, 'backups'), { recursive: true, force: true })
    const agent = await startAgent(dataDir, { threads: availableParallelism() })
    await settled()
    try {
      await timed(times, 'first', () => agent.create('srv_bench'))
      await timed(times, 'unchanged', () => agent.create('srv_bench'))
      change(place)
      const before = size(agent.storeDir)
      await timed(times, 'changed', () => agent.create('srv_bench'))
      record(times, 'changedBytes', size(agent.storeDir) - before)
      await settled()
      const last = await agent.create('srv_bench')
      agent.filesOf('srv_empty')
      await timed(times, 'restore', () => agent.restore('srv_empty', last.backupId, { sourceServerId: 'srv_bench' }))
      rmSync(join(dataDir, 'servers/srv_empty'), { recursive: true })
      changeInPlace(place.tree, { files: 2, bytes: 2_000_000 }, 900 + place.round)
      await timed(times, 'restoreOver', () => agent.restore('srv_bench', last.backupId))
    } finally {
      await agent.stop()
      rmSync(join(dataDir, 'backups'), { recursive: true, force: true })
      rmSync(join(dataDir, 'servers/srv_bench/trash'), { recursive: true, force: true })
    }
  },
}

const restic: Tool = {
  name: 'restic',
  async round(place, times) {
    const repository = join(place.base, 'restic')
    const restored = join(place.base, 'restored')
    const command = (...args: string[]) =>
      execFileSync('restic', ['-q', '-r', repository, ...args], {
        env: { ...process.env, RESTIC_PASSWORD: 'bench', RESTIC_CACHE_DIR: join(place.base, 'restic-cache') },
      })
    command('init')
    await timed(times, 'first', () => command('backup', place.tree))
    await timed(times, 'unchanged', () => command('backup', place.tree))
    change(place)
    const before = size(repository)
    await timed(times, 'changed', () => command('backup', place.tree))
    record(times, 'changedBytes', size(repository) - before)
    await timed(times, 'restore', () => command('restore', 'latest', '--target', restored))
    for (const folder of [repository, restored, join(place.base, 'restic-cache')])
      rmSync(folder, { recursive: true, force: true })
  },
}

const borg: Tool = {
  name: 'borg',
  async round(place, times) {
    const repository = join(place.base, 'borg')
    const restored = join(place.base, 'restored')
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
    await timed(times, 'first', () => command(place.tree, 'create', `${repository}::1`, '.'))
    await timed(times, 'unchanged', () => command(place.tree, 'create', `${repository}::2`, '.'))
    change(place)
    const before = size(repository)
    await timed(times, 'changed', () => command(place.tree, 'create', `${repository}::3`, '.'))
    record(times, 'changedBytes', size(repository) - before)
    mkdirSync(restored)
    await timed(times, 'restore', () => command(restored, 'extract', `${repository}::3`))
    for (const folder of [repository, restored, join(place.base, 'borg-home')])
      rmSync(folder, { recursive: true, force: true })
  },
}

function tar(name: string, packer: string): Tool {
  return {
    name,
    async round(place, times) {
      const archive = join(place.base, 'archive')
      const pack = () => execFileSync('sh', ['-c', `tar -C "$1" -cf - . | ${packer} > "$2"`, 'sh', place.tree, archive])
      await timed(times, 'first', pack)
      rmSync(archive)
    },
  }
}

function heat(tree: string): void {
  for (const entry of readdirSync(tree, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) readFileSync(join(entry.parentPath, entry.name))
  spawnSync('sync')
}

function size(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

function mediansOf(times: Times): Partial<Record<Line, number>> {
  return Object.fromEntries(
    Object.entries(times).map(([line, values]) => [line, values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0]),
  )
}

function ratiosOf(medians: BackupFigures['medians']): BackupFigures['ratios'] {
  const of = (tool: string, line: Line) => medians[tool]?.[line] ?? Number.NaN
  const over = (line: Line) => of('restic', line) / of('gamekeeper', line)
  return {
    'first backup: restic / ours': { value: over('first'), atLeast: 4 },
    'first backup: ours / tar with zstd': {
      value: of('gamekeeper', 'first') / of('tar | zstd -3 -T2', 'first'),
      atMost: 1.5,
    },
    'nothing changed: restic / ours': { value: over('unchanged'), atLeast: 10 },
    '15 MB changed: restic / ours': { value: over('changed'), atLeast: 5 },
    '15 MB changed, bytes added: ours / restic': { value: 1 / over('changedBytes'), atMost: 0.25 },
    'full restore: restic / ours': { value: over('restore'), atLeast: 2 },
    'restore: full / over 1 % changed': {
      value: of('gamekeeper', 'restore') / of('gamekeeper', 'restoreOver'),
      atLeast: 10,
    },
  }
}

function format(line: Line, value: number): string {
  return line === 'changedBytes' ? `${(value / 1e6).toFixed(1)} MB` : `${value.toFixed(2)} s`
}

function print({ medians, ratios }: BackupFigures, say: (line: string) => void): void {
  say(`| | ${LINES.join(' | ')} |`)
  say(`|---|${LINES.map(() => '---|').join('')}`)
  for (const [name, own] of Object.entries(medians))
    say(`| ${name} | ${LINES.map((line) => (own[line] === undefined ? '' : format(line, own[line]))).join(' | ')} |`)
  for (const [name, { value, atLeast, atMost }] of Object.entries(ratios)) {
    const isMet = atLeast === undefined ? value <= (atMost ?? 0) : value >= atLeast
    say(
      `${isMet ? 'met' : 'MISSED'}: ${name}: ${value.toFixed(2)} (${atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`})`,
    )
  }
}

// Backups against restic, borg and tar, on a Minecraft-like server of about 1.9 GB, hot cache, medians of three rounds. The
// service is a process of its own and is driven over HTTP; it has backed up a small server three times before, as one that
// runs has.
import { mkdirSync, mkdtempSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { changeInPlace, changeSmallFiles, MINECRAFT, makeTree, type TreeShape } from './game-tree.ts'
import {
  borg,
  discard,
  heat,
  LINES,
  type Line,
  record,
  restic,
  sizeOf,
  type Times,
  type Tool,
  tar,
} from './support/backup-peers.ts'
import { startBackupService } from './support/backup-service.ts'
import { type BarGroup, barChart } from './support/chart.ts'

const ROUNDS = Number(process.env.GAMEKEEPER_BENCH_ROUNDS ?? 3)
/** What was written within the last second is read again by the next backup, since its time proves nothing yet. */
const SETTLING_MS = 1100

const SMALL: TreeShape = { regionFiles: 4, regionBytes: MINECRAFT.regionBytes, smallFiles: 500 }

export interface BackupFigures {
  medians: Record<string, Partial<Record<Line, number>>>
  ratios: Record<string, { value: number; atLeast?: number; atMost?: number }>
}

export async function run(shape: TreeShape = MINECRAFT, say: (line: string) => void = console.log): Promise<boolean> {
  const { ratios } = await measure(shape, say)
  return Object.values(ratios).every(isMet)
}

export async function measure(shape: TreeShape, say: (line: string) => void): Promise<BackupFigures> {
  const base = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
  const times: Record<string, Times> = {}
  let changes = 0
  try {
    const tree = join(base, 'tree')
    const change = (folder: string) => void changeInPlace(folder, undefined, 100 + changes++)
    makeTree(tree, shape)
    const tools = [ours, restic, borg, tar('tar | pigz -1', 'pigz -1'), tar('tar | zstd -3 -T2', 'zstd -3 -T2 -q')]
    for (let round = 0; round < ROUNDS; round++) {
      const place = { base: join(base, `round-${round}`), tree, change }
      mkdirSync(place.base)
      for (const tool of tools) {
        heat(tree)
        const own = times[tool.name] ?? {}
        times[tool.name] = own
        await tool.round(place, own)
        const measured = LINES.filter((line) => own[line])
        const values = measured.map((line) => `${line} ${format(line, own[line]?.at(-1) ?? 0)}`)
        say(`round ${round + 1}, ${tool.name}: ${values.join(', ')}`)
      }
    }
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
  const medians = Object.fromEntries(Object.entries(times).map(([name, own]) => [name, mediansOf(own)]))
  const figures = { medians, ratios: ratiosOf(medians) }
  print(figures, say)
  const chart = process.env.GAMEKEEPER_BENCH_CHART
  if (chart) writeFileSync(chart, barChart('Backups against restic, borg and tar', groupsOf(medians)))
  return figures
}

const ours: Tool = {
  name: 'gamekeeper',
  async round({ base, tree, change }, times) {
    const dataDir = join(base, 'data')
    mkdirSync(dataDir)
    const store = join(dataDir, 'backups')
    const { client, filesOf, backUp, restore, stop } = await startBackupService(dataDir)
    const { id: serverId } = await client.servers.create({ name: 'Bench' })
    const { id: emptyId } = await client.servers.create({ name: 'Empty' })
    const { id: smallId } = await client.servers.create({ name: 'Small' })
    const files = filesOf(serverId)
    rmdirSync(files)
    renameSync(tree, files)
    try {
      for (const seed of [2, 3, 4]) {
        makeTree(filesOf(smallId), SMALL, seed)
        await backUp(smallId)
      }
      await delay(SETTLING_MS)
      record(times, 'first', (await backUp(serverId)).seconds)
      record(times, 'unchanged', (await backUp(serverId)).seconds)
      change(files)
      const before = sizeOf(store)
      record(times, 'changed', (await backUp(serverId)).seconds)
      record(times, 'changedBytes', sizeOf(store) - before)
      await delay(SETTLING_MS)
      const { backup } = await backUp(serverId)
      heat(store)
      record(times, 'restore', await restore(serverId, backup.id, emptyId))
      // One in a hundred of the region files, rewritten all over, and of the small ones.
      changeInPlace(files, { files: 2, bytes: 23_000_000 }, 900)
      changeSmallFiles(files, 50)
      record(times, 'restoreOver', await restore(serverId, backup.id))
    } finally {
      await stop()
      renameSync(files, tree)
      discard(dataDir)
    }
  },
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

const TITLES: Record<Line, string> = {
  first: 'First backup',
  unchanged: 'Nothing changed',
  changed: '15 MB changed in place',
  changedBytes: '15 MB changed in place: added to the store',
  restore: 'Full restore',
  restoreOver: 'Restore over a tree in which 1 % has changed',
}

/** What others do too. */
function groupsOf(medians: BackupFigures['medians']): BarGroup[] {
  const groups = LINES.map((line) => ({
    title: TITLES[line],
    bars: Object.entries(medians).flatMap(([name, own]) => {
      const value = own[line]
      return value === undefined ? [] : [{ name, value, label: format(line, value) }]
    }),
  }))
  return groups.filter(({ bars }) => bars.length > 1)
}

function isMet({
  value,
  atLeast,
  atMost,
}: {
  value: number
  atLeast?: number | undefined
  atMost?: number | undefined
}) {
  return atLeast === undefined ? value <= (atMost ?? 0) : value >= atLeast
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
    const bar = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`
    say(`${isMet({ value, atLeast, atMost }) ? 'met' : 'MISSED'}: ${name}: ${value.toFixed(2)} (${bar})`)
  }
}

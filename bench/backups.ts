// Backups against restic, borg and tar, on a Minecraft-like server of about 1.9 GB, hot cache, medians of three rounds. The
// service is a process of its own and is driven over HTTP; it has backed up and restored a small server a
// dozen times before, as one that runs has.
import { mkdirSync, mkdtempSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { MINECRAFT, makeTree, type TreeShape } from './game-tree.ts'
import { holds, median, table } from './measure.ts'
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
  UNCHANGED_RUNS,
} from './support/backup-peers.ts'
import { startBackupService } from './support/backup-service.ts'
import { changeTree } from './support/change-tree.ts'
import { type BarGroup, barChart } from './support/chart.ts'

const ROUNDS = Number(process.env.GAMEKEEPER_BENCH_ROUNDS ?? 3)
/** What was written within the last second is read again by the next backup, since its time proves nothing yet. */
const SETTLING_MS = 1100

/** So often it has backed up and restored a small server before, and found it unchanged: as one that has run for a day. */
const WARM_UPS = 12
const SMALL: TreeShape = { regionFiles: 4, regionBytes: MINECRAFT.regionBytes, smallFiles: 500 }

/** What a game that saves rewrites. */
const SAVED = { files: 40, bytes: 15_000_000, smallFiles: 0 }

type Medians = Record<string, Partial<Record<Line, number>>>

export async function run(): Promise<boolean> {
  const medians = await measure()
  const chart = process.env.GAMEKEEPER_BENCH_CHART
  if (chart) writeFileSync(chart, barChart('Backups against restic, borg and tar', groupsOf(medians)))
  const names = Object.entries(medians)
  table([['', ...LINES], ...names.map(([name, own]) => [name, ...LINES.map((line) => format(line, own[line]))])])
  return judge(medians).every(Boolean)
}

async function measure(): Promise<Medians> {
  const base = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
  const times: Record<string, Times> = {}
  let changes = 0
  try {
    const tree = join(base, 'tree')
    const change = (root: string) => changeTree({ root, seed: 100 + changes++, ...SAVED })
    makeTree(tree, MINECRAFT)
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
        const values = measured.map((line) => `${line} ${format(line, own[line]?.at(-1))}`)
        console.log(`round ${round + 1}, ${tool.name}: ${values.join(', ')}`)
      }
    }
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
  const mediansOf = (own: Times) => Object.fromEntries(Object.entries(own).map(([line, all]) => [line, median(all)]))
  return Object.fromEntries(Object.entries(times).map(([name, own]) => [name, mediansOf(own)]))
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
    const { id: copyId } = await client.servers.create({ name: 'Copy' })
    const files = filesOf(serverId)
    rmdirSync(files)
    renameSync(tree, files)
    try {
      for (let count = 0; count < WARM_UPS; count++) {
        makeTree(filesOf(smallId), SMALL, 2 + count)
        const { backup } = await backUp(smallId)
        await restore(smallId, backup.id, copyId)
      }
      await delay(SETTLING_MS)
      for (let count = 0; count < WARM_UPS; count++) await backUp(smallId)
      record(times, 'first', (await backUp(serverId)).seconds)
      for (let count = 0; count < UNCHANGED_RUNS; count++) record(times, 'unchanged', (await backUp(serverId)).seconds)
      change(files)
      const before = sizeOf(store)
      record(times, 'changed', (await backUp(serverId)).seconds)
      record(times, 'changedBytes', sizeOf(store) - before)
      await delay(SETTLING_MS)
      const { backup } = await backUp(serverId)
      heat(store)
      record(times, 'restore', await restore(serverId, backup.id, emptyId))
      // One in a hundred of the region files, rewritten all over, and of the small ones.
      changeTree({ root: files, seed: 900, files: 2, bytes: 23_000_000, smallFiles: 50 })
      record(times, 'restoreOver', await restore(serverId, backup.id))
    } finally {
      await stop()
      renameSync(files, tree)
      discard(dataDir)
    }
  },
}

function judge(medians: Medians): boolean[] {
  const of = (tool: string, line: Line) => medians[tool]?.[line] ?? Number.NaN
  const over = (line: Line) => of('restic', line) / of('gamekeeper', line)
  const toTar = of('gamekeeper', 'first') / of('tar | zstd -3 -T2', 'first')
  const toFull = of('gamekeeper', 'restore') / of('gamekeeper', 'restoreOver')
  return [
    holds('first backup: restic / ours', over('first'), '>=', 4),
    holds('first backup: ours / tar with zstd', toTar, '<=', 1.5),
    holds('nothing changed: restic / ours', over('unchanged'), '>=', 10),
    holds('15 MB changed: restic / ours', over('changed'), '>=', 5),
    holds('15 MB changed, bytes added: ours / restic', 1 / over('changedBytes'), '<=', 0.25),
    holds('full restore: restic / ours', over('restore'), '>=', 2),
    holds('restore: full / over 1 % changed', toFull, '>=', 10),
  ]
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
function groupsOf(medians: Medians): BarGroup[] {
  const groups = LINES.map((line) => ({
    title: TITLES[line],
    bars: Object.entries(medians).flatMap(([name, own]) => {
      const value = own[line]
      return value === undefined ? [] : [{ name, value, label: format(line, value) }]
    }),
  }))
  return groups.filter(({ bars }) => bars.length > 1)
}

function format(line: Line, value: number | undefined): string {
  if (value === undefined) return ''
  return line === 'changedBytes' ? `${(value / 1e6).toFixed(1)} MB` : `${value.toFixed(3)} s`
}

// Backups against restic, rustic where it is installed, borg and tar, on three servers, hot cache, medians of some rounds.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { holds, median, table } from './measure.ts'
import { ours } from './support/backup-ours.ts'
import { borg, heat, LINES, type Line, restic, rustic, type Times, type Tool, tar } from './support/backup-peers.ts'
import { type BenchTree, TREES } from './support/backup-trees.ts'
import { type BarGroup, barChart } from './support/chart.ts'

const ROUNDS = Number(process.env.GAMEKEEPER_BENCH_ROUNDS ?? 3)
const MIB = 1024 ** 2

type Medians = Record<string, Partial<Record<Line, number>>>

/** What the service has when it does nothing. */
const IDLE_MIB = 193

export async function run(): Promise<boolean> {
  const wanted = process.env.GAMEKEEPER_BENCH_TREES?.split(',') ?? Object.keys(TREES)
  const held: boolean[] = []
  for (const name of wanted) {
    const tree = TREES[name]
    if (!tree) throw new Error(`There is no tree ${name}: ${Object.keys(TREES).join(', ')}.`)
    console.log(`\n${name}: ${tree.what}`)
    const medians = await measure(tree)
    const chart = process.env.GAMEKEEPER_BENCH_CHART
    if (chart && name === 'game')
      writeFileSync(chart, barChart('Backups against restic, borg and tar', groupsOf(medians)))
    const names = Object.entries(medians)
    table([['', ...LINES], ...names.map(([tool, own]) => [tool, ...LINES.map((line) => format(line, own[line]))])])
    held.push(...judge(name, tree, medians))
  }
  return held.every(Boolean)
}

const isInstalled = (program: string) => spawnSync(program, ['--version']).status === 0

function toolsFor(tree: BenchTree): Tool[] {
  const peers = [restic, borg]
  if (isInstalled('rustic')) peers.push(rustic)
  else console.log('rustic is not installed, so it is not measured')
  const packers = [tar('tar | pigz -1', 'pigz -1'), tar('tar | zstd -3 -T2', 'zstd -3 -T2 -q')]
  const all = [ours('warm', tree.changeMuch), ours('cold', tree.changeMuch), ...peers, ...packers]
  const only = process.env.GAMEKEEPER_BENCH_TOOLS?.split(',')
  return only ? all.filter(({ name }) => only.some((part) => name.includes(part))) : all
}

async function measure(bench: BenchTree): Promise<Medians> {
  const base = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
  const times: Record<string, Times> = {}
  let changes = 0
  try {
    const tree = join(base, 'tree')
    const change = (root: string) => bench.change(root, 100 + changes++)
    bench.make(tree)
    for (let round = 0; round < ROUNDS; round++) {
      const place = { base: join(base, `round-${round}`), tree, change }
      mkdirSync(place.base)
      for (const tool of toolsFor(bench)) {
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

function judge(name: string, { bars }: BenchTree, medians: Medians): boolean[] {
  const of = (tool: string, line: Line) => medians[tool]?.[line] ?? Number.NaN
  const held: boolean[] = []
  for (const kind of ['warm', 'cold']) {
    const us = `gamekeeper, ${kind}`
    if (!medians[us]) continue
    const say = (what: string, value: number, sign: '<=' | '>=', bar: number) =>
      held.push(holds(`${name}, ${kind}: ${what}`, value, sign, bar))
    for (const line of ['first', 'unchanged', 'changed', 'restore'] as const) {
      const bar = bars[line]
      if (bar) say(`${TITLES[line]}, restic / ours`, of('restic', line) / of(us, line), '>=', bar)
      const toRustic = bars.rustic?.[line]
      if (toRustic && medians.rustic)
        say(`${TITLES[line]}, rustic / ours`, of('rustic', line) / of(us, line), '>=', toRustic)
    }
    if (bars.changedBytes)
      say('bytes added, ours / restic', of(us, 'changedBytes') / of('restic', 'changedBytes'), '<=', bars.changedBytes)
    if (bars.isMemoryBound)
      say(
        'peak memory, ours less the idle service / restic',
        (of(us, 'memory') - IDLE_MIB * MIB) / of('restic', 'memory'),
        '<=',
        1,
      )
    say('first backup, ours / tar with zstd', of(us, 'first') / of('tar | zstd -3 -T2', 'first'), '<=', 1.5)
    say('full restore / one over 1 % changed', of(us, 'restore') / of(us, 'restoreOver'), '>=', 10)
  }
  return held
}

const TITLES: Record<Line, string> = {
  first: 'first backup',
  unchanged: 'nothing changed',
  changed: 'changed in place',
  changedBytes: 'changed in place: added to the store',
  restore: 'full restore',
  restoreOver: 'restore over a tree in which 1 % has changed',
  memory: 'peak memory',
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
  if (line === 'memory') return `${(value / MIB).toFixed(0)} MiB`
  return line === 'changedBytes' ? `${(value / 1e6).toFixed(1)} MB` : `${value.toFixed(3)} s`
}

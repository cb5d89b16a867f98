// Backups against restic, rustic where it is installed, borg and tar, on three servers, hot cache, medians of some rounds.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { holds, table } from './measure.ts'
import { ours } from './support/backup-ours.ts'
import { borg, LINES, type Line, restic, rustic, TITLES, type Tool, tar } from './support/backup-peers.ts'
import { format, type Medians, measureTree, ROUNDS } from './support/backup-rounds.ts'
import { type BenchTree, wantedTrees } from './support/backup-trees.ts'
import { type BarGroup, barChart } from './support/chart.ts'

const MIB = 1024 ** 2

/** What the service has when it does nothing. */
const IDLE_MIB = 193

export async function run(): Promise<boolean> {
  const held: boolean[] = []
  for (const [name, tree] of Object.entries(wantedTrees())) {
    console.log(`\n${name}: ${tree.what}`)
    const medians = await measureTree(tree, ROUNDS, () => toolsFor(tree))
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

const ZSTD = 'tar | zstd -3 -T2'

function toolsFor(tree: BenchTree): Tool[] {
  const peers = [restic, borg]
  if (isInstalled('rustic')) peers.push(rustic)
  else console.log('rustic is not installed, so it is not measured')
  const packers = [tar('tar | pigz -1', 'pigz -1'), tar(ZSTD, 'zstd -3 -T2 -q')]
  const all = [ours('warm', tree), ours('cold', tree), ...peers, ...packers]
  const only = process.env.GAMEKEEPER_BENCH_TOOLS?.split(',')
  return only ? all.filter(({ name }) => only.some((part) => name.includes(part))) : all
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
    if (medians[ZSTD]) say('first backup, ours / tar with zstd', of(us, 'first') / of(ZSTD, 'first'), '<=', 1.5)
    say('full restore / one over 1 % changed', of(us, 'restore') / of(us, 'restoreOver'), '>=', 10)
  }
  return held
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

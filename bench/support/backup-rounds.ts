// Rounds in which several tools back up and restore the same server, one after the other, hot cache.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from '../measure.ts'
import { heat, LINES, type Line, type Times, type Tool } from './backup-peers.ts'
import type { BenchTree } from './backup-trees.ts'
import { settle } from './settling.ts'

export const ROUNDS = Number(process.env.GAMEKEEPER_BENCH_ROUNDS ?? 3)
const MIB = 1024 ** 2

/** By tool. */
export type Medians = Record<string, Partial<Record<Line, number>>>

export const mediansOf = (times: Record<string, Times>): Medians =>
  Object.fromEntries(
    Object.entries(times).map(([name, own]) => [
      name,
      Object.fromEntries(Object.entries(own).map(([line, all]) => [line, median(all)])),
    ]),
  )

/** `toolsFor` is asked before each round; what was measured by then is filled in while it runs. */
export async function measureTree(
  bench: Pick<BenchTree, 'make' | 'change' | 'settleMs'>,
  rounds: number,
  toolsFor: (times: Record<string, Times>) => Tool[],
): Promise<Medians> {
  const base = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
  const times: Record<string, Times> = {}
  let changes = 0
  try {
    const tree = join(base, 'tree')
    const change = (root: string) => bench.change(root, 100 + changes++)
    bench.make(tree)
    await settle(bench.settleMs)
    for (let round = 0; round < rounds; round++) {
      const place = { base: join(base, `round-${round}`), tree, change }
      mkdirSync(place.base)
      for (const tool of toolsFor(times)) {
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
  return mediansOf(times)
}

export function format(line: Line, value: number | undefined): string {
  if (value === undefined) return ''
  if (line === 'memory') return `${(value / MIB).toFixed(0)} MiB`
  return line.endsWith('Bytes') ? `${(value / 1e6).toFixed(1)} MB` : `${value.toFixed(3)} s`
}

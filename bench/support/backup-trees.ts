// The servers on which backups are measured, and the bars that each has to hold.
import { MINECRAFT, makeTree } from '../game-tree.ts'
import { changeManyFiles, makeManyFiles } from '../many-files.ts'
import { changeTree } from './change-tree.ts'
import { makeUntunedTree } from './untuned-tree.ts'

export interface BenchTree {
  what: string
  make(root: string): void
  /** What a game that saves rewrites; another place each time. */
  change(root: string, seed: number): void
  /** About one in a hundred of the files, rewritten all over. */
  changeMuch(root: string): void
  bars: Bars
  /** How long its files are left alone; a minute by default, as `SETTLED_MS` says. */
  settleMs?: number
}

/** How many times the peer takes what we take; what is undefined is reported only. */
export interface Bars {
  first: number
  unchanged: number
  changed?: number
  restore: number
  /** Of the bytes that restic adds. */
  changedBytes?: number
  /** At most what restic takes, beyond what the service has when it does nothing. */
  isMemoryBound?: boolean
  rustic?: { first?: number; unchanged?: number; changed?: number; restore: number }
}

const LARGE: Bars = {
  first: 6,
  unchanged: 20,
  changed: 10,
  restore: 3,
  changedBytes: 0.15,
  rustic: { first: 4, restore: 2 },
}

const inPlace = (bytes: number) => (root: string, seed: number) =>
  changeTree({ root, seed, files: 40, bytes, smallFiles: 0 })
const ONE_IN_A_HUNDRED = { seed: 900, files: 2, bytes: 23_000_000 }
const SMALL_FILES = 300_000

export const TREES: Record<string, BenchTree> = {
  game: {
    what: '1.9 GB as Minecraft writes it',
    make: (root) => makeTree(root, MINECRAFT),
    change: inPlace(15_000_000),
    changeMuch: (root) => changeTree({ root, ...ONE_IN_A_HUNDRED, smallFiles: 50 }),
    bars: LARGE,
  },
  untuned: {
    what: '1.7 GB: small chunks, logs, 4,800 files of settings',
    make: makeUntunedTree,
    change: inPlace(20_000_000),
    changeMuch: (root) => changeTree({ root, ...ONE_IN_A_HUNDRED, smallFiles: 0 }),
    bars: LARGE,
  },
  small: {
    what: '300,000 files of 100 to 1,000 bytes',
    make: (root) => makeManyFiles(root, SMALL_FILES),
    change: (root, seed) => changeManyFiles(root, SMALL_FILES, 200, seed),
    changeMuch: (root) => changeManyFiles(root, SMALL_FILES, SMALL_FILES / 100, 900),
    bars: { first: 3, unchanged: 10, restore: 3, isMemoryBound: true, rustic: { restore: 2 } },
  },
}

/** Those of `GAMEKEEPER_BENCH_TREES`, or all. */
export function wantedTrees(): Record<string, BenchTree> {
  const wanted = process.env.GAMEKEEPER_BENCH_TREES?.split(',') ?? Object.keys(TREES)
  return Object.fromEntries(
    wanted.map((name) => {
      const tree = TREES[name]
      if (!tree) throw new Error(`There is no tree ${name}: ${Object.keys(TREES).join(', ')}.`)
      return [name, tree]
    }),
  )
}

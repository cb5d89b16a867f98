// Runs rounds: a theme, an engine and a seed each. Answers what was found wrong.
import { readFileSync } from 'node:fs'
import type { Engine } from '../../../src/control/db/database.ts'
import { checkRound } from './checker/index.ts'
import { createRound, type Round } from './round.ts'
import { THEMES } from './themes/index.ts'
import type { Theme } from './themes/theme.ts'

export interface Result {
  theme: string
  engine: Engine
  seed: number
  violations: string[]
  /** Where the history is; kept where something was found. */
  history: string
  requests: number
}

export const ENGINES: readonly Engine[] = ['sqlite', 'postgres']

export async function runRound(name: string, engine: Engine, seed: number, isKept = false): Promise<Result> {
  const theme = THEMES[name]
  if (!theme) throw new Error(`there is no theme ${name}; there are ${Object.keys(THEMES).join(', ')}`)
  return await runTheme(theme, name, engine, seed, isKept)
}

export async function runTheme(
  theme: Theme,
  name: string,
  engine: Engine,
  seed: number,
  isKept = false,
): Promise<Result> {
  let prepared: Disposable | undefined
  const round = await createRound(seed, engine, {
    ...(theme.settings ? { settings: theme.settings } : {}),
    isKept,
    prepare(keeper) {
      prepared = theme.prepare?.(keeper.dataDir)
    },
  })
  round.history.note({ theme: name, engine, seed })
  try {
    await theme.run(round)
    await checkRound(round)
  } catch (error) {
    round.violation(`the round broke off: ${describe(error, round)}`)
  } finally {
    await round.keeper.kill()
    prepared?.[Symbol.dispose]()
    await round.dispose()
  }
  return {
    theme: name,
    engine,
    seed,
    violations: [...round.violations],
    history: round.history.path,
    requests: round.history.length,
  }
}

function describe(error: unknown, { keeper }: Round): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return `${text}\n${keeper.output().slice(-2000)}`
}

/** The theme of each round in turn, on both engines, so that every run of a few dozen rounds has seen all of them. */
export function planRounds(
  rounds: number,
  seed: number,
  only: readonly string[] = [],
  engines: readonly Engine[] = ENGINES,
): { theme: string; engine: Engine; seed: number }[] {
  const runnable = Object.entries(THEMES)
    .filter(([name]) => only.length === 0 || only.includes(name))
    .flatMap(([theme, { engines: of = ENGINES }]) =>
      of.filter((engine) => engines.includes(engine)).map((engine) => ({ theme, engine })),
    )
  return Array.from({ length: rounds }, (_, index) => {
    const { theme, engine } = runnable[index % runnable.length] ?? { theme: '', engine: 'sqlite' as const }
    return { theme, engine, seed: seed + index }
  })
}

export function reasonToSkip(theme: string): string | false {
  return THEMES[theme]?.skip?.() ?? false
}

/** The last lines of a history, for whoever looks for the reason. */
export const tailOf = (path: string, lines = 20) =>
  readFileSync(path, 'utf8').trimEnd().split('\n').slice(-lines).join('\n')

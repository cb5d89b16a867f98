// `npm run faults -- history [rounds] [--seed S] [--theme a,b] [--engine sqlite|postgres] [--keep]
// [--at-once N]`.
import { parseArgs } from 'node:util'
import { startPostgres } from '../../../scripts/postgres.ts'
import { missingTools } from '../../../scripts/tools.ts'
import type { Engine } from '../../../src/control/db/database.ts'
import { atOnce } from './at-once.ts'

const DAY_MS = 24 * 3600_000

export async function runHistories(rounds: number, say: (line: string) => void, args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      seed: { type: 'string' },
      theme: { type: 'string' },
      engine: { type: 'string' },
      keep: { type: 'boolean' },
      'at-once': { type: 'string', default: '1' },
    },
  })
  const seed = Number(values.seed ?? Date.now() % DAY_MS)
  await withPostgres(async (engines) => {
    const { planRounds, runRound, reasonToSkip, tailOf } = await import('./run.ts')
    const wanted = values.engine ? engines.filter((engine) => engine === values.engine) : engines
    let faulty = 0

    async function runOne({
      index,
      theme,
      engine,
      seed: own,
    }: ReturnType<typeof planRounds>[number] & { index: number }) {
      const head = `round ${index + 1} of ${rounds}, ${theme} on ${engine}, --seed ${own}`
      const skip = reasonToSkip(theme)
      if (skip) return say(`${head}: skipped, ${skip}`)
      const startedAt = performance.now()
      const { violations, history, requests } = await runRound(theme, engine, own, values.keep)
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
      const faults = violations.map((violation) => `\n  - ${violation}`).join('')
      say(`${head}: ${requests} requests, ${seconds} s, ${violations.length === 0 ? 'clean' : `NOT CLEAN${faults}`}`)
      if (violations.length > 0) faulty++
      else if (!values.keep) return
      say(`  the history is in ${history} and ends with\n${tailOf(history, 5).replaceAll(/^/gm, '    ')}`)
    }

    const planned = planRounds(rounds, seed, values.theme?.split(','), wanted)
    const numbered = planned.map((round, index) => ({ ...round, index }))
    await atOnce(Number(values['at-once']), numbered, runOne)
    say(`${rounds} rounds, ${faulty} not clean`)
    if (faulty > 0) process.exitCode = 1
  })
}

/** The engines that there are; a PostgreSQL is started where none was named. */
export async function withPostgres<T>(work: (engines: Engine[]) => Promise<T>): Promise<T> {
  if (process.env.GAMEKEEPER_TEST_POSTGRES) return await work(['sqlite', 'postgres'])
  if (missingTools().includes('postgresql')) return await work(['sqlite'])
  const postgres = await startPostgres()
  process.env.GAMEKEEPER_TEST_POSTGRES = postgres.url
  try {
    return await work(['sqlite', 'postgres'])
  } finally {
    await postgres.stop()
  }
}

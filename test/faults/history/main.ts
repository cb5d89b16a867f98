// `npm run faults -- history [rounds] [--seed S] [--theme a,b] [--engine sqlite|postgres] [--keep]`.
import { parseArgs } from 'node:util'
import { startPostgres } from '../../../scripts/postgres.ts'
import { missingTools } from '../../../scripts/tools.ts'
import type { Engine } from '../../../src/control/db/database.ts'

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
    },
  })
  const seed = Number(values.seed ?? Date.now() % DAY_MS)
  await withPostgres(async (engines) => {
    const { planRounds, runRound, reasonToSkip, tailOf } = await import('./run.ts')
    const wanted = values.engine ? engines.filter((engine) => engine === values.engine) : engines
    let faulty = 0
    for (const [index, planned] of planRounds(rounds, seed, values.theme?.split(','), wanted).entries()) {
      const head = `round ${index + 1} of ${rounds}, ${planned.theme} on ${planned.engine}, --seed ${planned.seed}`
      const skip = reasonToSkip(planned.theme)
      if (skip) {
        say(`${head}: skipped, ${skip}`)
        continue
      }
      const startedAt = performance.now()
      const { violations, history, requests } = await runRound(planned.theme, planned.engine, planned.seed, values.keep)
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
      say(`${head}: ${requests} requests, ${seconds} s, ${violations.length === 0 ? 'clean' : 'NOT CLEAN'}`)
      for (const violation of violations) say(`  - ${violation}`)
      if (violations.length === 0 && !values.keep) continue
      if (violations.length > 0) faulty++
      say(`  the history is in ${history} and ends with\n${tailOf(history, 5).replaceAll(/^/gm, '    ')}`)
    }
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

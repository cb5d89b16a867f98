// `npm run faults -- history-errors`: every call of the scenario with every error number, some dozens in one round.
import { withPostgres } from './main.ts'

const IN_ONE_ROUND = 24

export async function runSweep(most: number, say: (line: string) => void): Promise<void> {
  await withPostgres(async (engines) => {
    const { runTheme } = await import('./run.ts')
    const { ERRNOS, everyCall } = await import('./themes/every-call.ts')
    let total = Number.POSITIVE_INFINITY
    let faulty = 0
    for (let start = 0; start < total; start += IN_ONE_ROUND) {
      const theme = everyCall((sites) => {
        const all = sites.flatMap((site) => ERRNOS.map((errno) => ({ site, errno })))
        total = most > 0 ? Math.min(most, all.length) : all.length
        return all.slice(start, Math.min(start + IN_ONE_ROUND, total))
      })
      const engine = engines[(start / IN_ONE_ROUND) % engines.length] ?? 'sqlite'
      const { violations, history } = await runTheme(theme, 'every-call', engine, 1)
      say(
        `calls ${start + 1} to ${Math.min(start + IN_ONE_ROUND, total)} of ${total} on ${engine}: ${violations.length === 0 ? 'clean' : history}`,
      )
      for (const violation of violations) say(`  - ${violation}`)
      if (violations.length > 0) faulty++
    }
    if (faulty > 0) process.exitCode = 1
  })
}

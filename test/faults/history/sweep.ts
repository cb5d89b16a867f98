// `npm run faults -- history-errors [failures] [--call 'addFile|readOutcome'] [--at-once N]`: every call of the scenario
// with every error number, some dozens in one round. Every call fails on both engines, each error number on one of them.
// A service waits more than it works, so several rounds run at once.
import { parseArgs } from 'node:util'
import type { Engine } from '../../../src/control/db/database.ts'
import { atOnce } from './at-once.ts'
import { withPostgres } from './main.ts'

const IN_ONE_ROUND = 24

export async function runSweep(most: number, say: (line: string) => void, args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    allowPositionals: true,
    options: { call: { type: 'string', default: '' }, 'at-once': { type: 'string', default: '2' } },
  })
  await withPostgres(async (engines) => {
    const { runTheme } = await import('./run.ts')
    const { ERRNOS, failures, noFailures } = await import('./themes/every-call.ts')
    const tally = { struck: 0, missed: [] as string[], faulty: 0 }

    async function run(engine: Engine, theme: Parameters<typeof runTheme>[0], what: string): Promise<void> {
      const { violations, history } = await runTheme(theme, 'every-call', engine, 1)
      say(`${what} on ${engine}: ${violations.length === 0 ? 'clean' : history}`)
      for (const violation of violations) say(`  - ${violation}`)
      if (violations.length > 0) tally.faulty++
    }

    const found = new Set<string>()
    for (const engine of engines) await run(engine, noFailures(found), 'nothing fails')
    const all = [...found]
      .filter((site) => new RegExp(values.call).test(site))
      .sort()
      .flatMap((site, at) =>
        ERRNOS.map((errno, nth) => ({ site, errno, engine: engines[(at + nth) % engines.length] ?? 'sqlite' })),
      )
    const planned = most > 0 ? all.slice(0, most) : all
    const parts = engines.flatMap((engine) => partsOf(planned.filter((failure) => failure.engine === engine)))
    await atOnce(Number(values['at-once']), parts, ({ engine, some, what }) => run(engine, failures(some, tally), what))
    const { struck, missed, faulty } = tally
    say(`${found.size} calls, ${planned.length} failures planned, ${struck} struck, ${faulty} rounds not clean`)
    for (const call of missed) say(`  not called this time: ${call}`)
    if (faulty > 0) process.exitCode = 1
  })
}

function partsOf<T extends { engine: Engine }>(all: readonly T[]): { engine: Engine; some: T[]; what: string }[] {
  return Array.from({ length: Math.ceil(all.length / IN_ONE_ROUND) }, (_, part) => {
    const start = part * IN_ONE_ROUND
    const some = all.slice(start, start + IN_ONE_ROUND)
    const what = `failures ${start + 1} to ${start + some.length} of ${all.length}`
    return { engine: some[0]?.engine ?? 'sqlite', some, what }
  })
}

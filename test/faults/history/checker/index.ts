// After a round: the service is started again, what was under way comes to its end, and then everything is compared.
import type { Round } from '../round.ts'
import { checkActivity, type Entry } from './activity.ts'
import { checkDns } from './dns.ts'
import { checkStaging, settlePlots } from './files.ts'
import { checkAccounts } from './quotas.ts'
import { checkBackups, checkJobs } from './work.ts'

/** After a crash or a stop. What nobody heard the answer of is known from here on. */
export async function startAgain(round: Round): Promise<void> {
  await round.keeper.start()
  round.history.note({ chaos: 'started again' })
  await checkJobs(round)
  settlePlots(round)
}

export async function checkRound(round: Round): Promise<Entry[]> {
  await round.keeper.set({ files: [], statements: [] })
  if (!round.keeper.isDown()) {
    await checkJobs(round)
    await round.keeper.kill()
  }
  await startAgain(round)
  checkStaging(round)
  await checkAccounts(round)
  const entries = await checkActivity(round)
  await checkBackups(round, entries)
  await checkDns(round)
  await checkReady(round, entries)
  return entries
}

/** A backup that has failed, with none after it that has completed, is said until there is one. */
async function checkReady({ keeper, violation }: Round, entries: Entry[]): Promise<void> {
  const { checks } = (await (await fetch(`${keeper.url}/readyz`)).json()) as { checks: Record<string, string> }
  const hasFailed = entries.some(({ event }) => event === 'backup.failed')
  for (const [name, fault] of Object.entries(checks))
    if (fault !== 'ok' && !(name === 'backups' && hasFailed))
      violation(`nothing is wrong any more, and /readyz says of ${name}: ${fault}`)
}

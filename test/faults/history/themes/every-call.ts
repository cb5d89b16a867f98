// Every call to the file system that a scenario makes fails once, with one error number after another.
import { settlePlots } from '../checker/files.ts'
import { failing } from '../keeper.ts'
import type { Round } from '../round.ts'
import { playScenario } from '../scenario.ts'
import type { Theme } from './theme.ts'

export const ERRNOS = ['EIO', 'ENOSPC', 'EACCES', 'EMFILE', 'EROFS', 'EPERM']

export interface Failure {
  site: string
  errno: string
}

/** How many of the failures came to be, and those whose call was not made. */
export interface Tally {
  struck: number
  missed: string[]
}

const ABOUT = {
  about: 'each call to the file system fails once: what is answered has happened, and what has is recorded',
  aimedAt: ['16', '7', '12'],
}

/** Plays the scenario, and adds the calls that it makes. */
export function noFailures(sites: Set<string>): Theme {
  return {
    ...ABOUT,
    async run(round) {
      for (const site of await sitesOf(round)) sites.add(site)
    },
  }
}

/** One after another, each while the scenario is played anew. */
export function failures(all: readonly Failure[], tally: Tally): Theme {
  return {
    ...ABOUT,
    async run(round) {
      round.excuses = { internalErrors: true, failedWork: true, failingDisk: true }
      for (const failure of all) await playWith(round, failure, tally)
    },
  }
}

/** In the order of their names: which come first depends on the scheduler. */
async function sitesOf(round: Round): Promise<string[]> {
  await round.keeper.set({ isCounting: true })
  await playScenario(round, await round.newServer(undefined, 1))
  const { sites } = await round.keeper.seen()
  await round.keeper.set({ isCounting: false })
  return Object.keys(sites).sort()
}

async function playWith(round: Round, { site, errno }: Failure, tally: Tally): Promise<void> {
  const found = round.violations.size
  const server = await round.newServer(undefined, 1)
  round.history.note({ chaos: 'fails', site, errno })
  const before = (await round.keeper.seen()).struck.length
  await round.keeper.set({ files: [failing(`^${RegExp.escape(site)}$`, errno)] })
  await playScenario(round, server)
  await round.keeper.set({ files: [] })
  if (round.keeper.isDown()) throw new Error(`${errno} at ${site} ended the service`)
  if ((await round.keeper.seen()).struck.length > before) tally.struck++
  else tally.missed.push(`${errno} at ${site}`)
  settlePlots(round)
  if (round.violations.size > found) round.violation(`… and that came of ${errno} at ${site}`)
}

const SAMPLE = 6

export const someCalls: Theme = {
  ...ABOUT,
  async run(round) {
    const sites = await sitesOf(round)
    const { random } = round
    const sample = Array.from({ length: SAMPLE }, () => ({ site: random.pick(sites), errno: random.pick(ERRNOS) }))
    await failures(sample, { struck: 0, missed: [] }).run(round)
  },
}

// Every call to the file system that a scenario makes fails once, with one error number after another.
import { settlePlots } from '../checker/files.ts'
import { failing } from '../keeper.ts'
import type { Random } from '../random.ts'
import type { Round } from '../round.ts'
import { playScenario } from '../scenario.ts'
import type { Theme } from './theme.ts'

export const ERRNOS = ['EIO', 'ENOSPC', 'EACCES', 'EMFILE', 'EROFS', 'EPERM']

export interface Failure {
  site: string
  errno: string
}

/** `select`: which of the calls fail in this round, one after another, each while the scenario is played anew. */
export function everyCall(select: (sites: string[], random: Random) => Failure[]): Theme {
  return {
    about: 'each call to the file system fails once: what is answered has happened, and what has is recorded',
    aimedAt: ['16', '7', '12'],
    async run(round) {
      round.excuses = { internalErrors: true, failedWork: true, failingDisk: true }
      const sites = await sitesOf(round)
      for (const { site, errno } of select(sites, round.random)) await playWith(round, site, errno)
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

async function playWith(round: Round, site: string, errno: string): Promise<void> {
  const found = round.violations.size
  const server = await round.newServer(undefined, 1)
  round.history.note({ chaos: 'fails', site, errno })
  await round.keeper.set({ files: [failing(`^${RegExp.escape(site)}$`, errno)] })
  await playScenario(round, server)
  await round.keeper.set({ files: [] })
  if (round.keeper.isDown()) throw new Error(`${errno} at ${site} ended the service`)
  settlePlots(round)
  if (round.violations.size > found) round.violation(`… and that came of ${errno} at ${site}`)
}

const SAMPLE = 6

export const someCalls = everyCall((sites, random) =>
  Array.from({ length: SAMPLE }, () => ({ site: random.pick(sites), errno: random.pick(ERRNOS) })),
)

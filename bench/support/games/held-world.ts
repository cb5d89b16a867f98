// How long a world stands still for its backup: a server of about 1.9 GB in which 15 MB changed since the last one, while its
// game runs and obeys save-off and save-on. Against the whole of the same backup while no game runs, as its times say.
import { rmSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { Backup } from '../../../src/contract/backups/backups.ts'
import { gameFile, QUIESCE, READY } from '../../../test/support/games.ts'
import { until } from '../../../test/support/until.ts'
import { MINECRAFT, makeTree } from '../../game-tree.ts'
import { holds, median, table } from '../../measure.ts'
import { changeTree } from '../change-tree.ts'
import { settle, TICK_MS } from '../settling.ts'
import { type GameService, startGameService } from './game-service.ts'

const ROUNDS = Number(process.env.GAMEKEEPER_BENCH_ROUNDS ?? 5)
/** What a game that saves rewrites. */
const SAVED = { files: 40, bytes: 15_000_000, smallFiles: 0 }

const TEMPLATE = {
  ...{ format: 1, id: 'saving', name: 'Saving', runtimes: ['process'], start: { args: ['./start'] }, ready: [READY] },
  ...{ stop: [{ command: 'stop', timeoutSeconds: 20 }], quiesce: QUIESCE },
}

/** Of a server in which something has changed since its last backup. */
async function backUp({ client, filesOf }: GameService, serverId: string, seed: number): Promise<Backup> {
  await settle(TICK_MS)
  await client.backups.wait(serverId, (await client.backups.create(serverId)).id)
  changeTree({ root: filesOf(serverId), seed, ...SAVED })
  return await client.backups.wait(serverId, (await client.backups.create(serverId)).id)
}

const took = ({ startedAt, completedAt }: Backup) => Date.parse(completedAt ?? '') - Date.parse(startedAt ?? '')

async function measure(games: GameService, serverId: string): Promise<{ held: number[]; scans: number[] }> {
  const { client } = games
  const [held, scans]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    await games.start(serverId)
    const running = await backUp(games, serverId, 100 + 2 * round)
    if (running.consistency !== 'quiesced' || running.heldMs === null)
      throw new Error(`the world was not held still: ${running.consistency}, ${running.warnings}`)
    held.push(running.heldMs)
    await client.power.stop(serverId)
    await until(async () => (await client.servers.read(serverId)).power.state === 'stopped')
    scans.push(took(await backUp(games, serverId, 101 + 2 * round)))
  }
  return { held, scans }
}

export async function heldWorld(): Promise<boolean> {
  await using games = await startGameService()
  await games.client.templates.create(JSON.stringify(TEMPLATE))
  const serverId = await games.create('Saving', pathToFileURL(gameFile('saving')), 'saving')
  makeTree(games.filesOf(serverId), MINECRAFT)
  await settle()
  const { held, scans } = await measure(games, serverId)
  rmSync(games.filesOf(serverId), { recursive: true, force: true })
  table([
    ['a server of 1.9 GB, 15 MB changed', 'median, ms', 'longest, ms'],
    ['its world stands still', median(held), Math.max(...held)],
    ['the same backup with no game, as a whole', median(scans), Math.max(...scans)],
  ])
  return holds('the time of the hold against the backup itself', median(held) / median(scans), '<=', 1.5)
}

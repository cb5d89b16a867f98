// Small games for tests, put into a server's files as its owner would, and the launch that a template would give.
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { signalGroup } from '../../src/agent/games/process-identity.ts'
import type { RunRecord } from '../../src/agent/games/supervisor/protocol.ts'
import type { Launch, Quiesce } from '../../src/contract/games/launch.ts'

export type TestGame =
  | 'plain'
  | 'stubborn'
  | 'hungry'
  | 'forking'
  | 'flood'
  | 'spy'
  | 'rubbish'
  | 'ticking'
  | 'filling'
  | 'linking'
  | 'holding'
  | 'saving'

export const gameFile = (game: TestGame) => fileURLToPath(new URL(`games/${game}`, import.meta.url))

/** On the disk itself, for tests that have no API: `filesFolder` is the server's. */
export function putGame(filesFolder: string, game: TestGame): void {
  copyFileSync(gameFile(game), join(filesFolder, 'start'))
}

export const READY = 'Done ('

export const launchOf = (change: Partial<Launch> = {}): Launch => ({
  templateId: 'test',
  argv: ['./start'],
  shellLine: null,
  environment: {},
  workingDirectory: '/',
  ready: [READY],
  stop: [{ command: 'stop', timeoutSeconds: 20, message: 'waiting for the world to save' }],
  stopsByItself: ['Stopping the server'],
  joins: [],
  leaves: [],
  ports: [],
  query: null,
  quiesce: null,
  image: null,
  configFiles: [],
  requires: [],
  ...change,
})

/** Of the game `saving`. */
export const QUIESCE: Quiesce = {
  before: ['save-off', 'save-all'],
  isStill: 'Saved the game',
  timeoutSeconds: 60,
  after: ['save-on'],
}

/** Games outlive a service, so whoever throws a data directory away ends them first. */
export function endGames(dataDir: string): void {
  endGamesIn(join(dataDir, 'servers'))
  endGamesIn(join(dataDir, 'rehearsals', 'servers'))
}

function endGamesIn(servers: string): void {
  for (const serverId of existsSync(servers) ? readdirSync(servers) : []) {
    const folder = join(servers, serverId, 'game')
    for (const name of existsSync(folder) ? readdirSync(folder) : []) {
      if (!/^run-.*\.json$/.test(name)) continue
      const { game, supervisor } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as RunRecord
      if (game) signalGroup(game, 'SIGKILL')
      signalGroup(supervisor, 'SIGKILL')
    }
  }
}

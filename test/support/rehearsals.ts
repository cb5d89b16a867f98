// The game of a rehearsal that is under way, seen from outside.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive } from '../../src/agent/games/process-identity.ts'
import type { RunRecord } from '../../src/agent/games/supervisor/protocol.ts'
import { until } from './until.ts'

export const rehearsalsOf = (dataDir: string) => join(dataDir, 'rehearsals')

/** Resolves once its game has been started. */
export function rehearsalUnderWay(dataDir: string, serverId: string): Promise<RunRecord> {
  const folder = join(rehearsalsOf(dataDir), 'servers', serverId, 'game')
  return until(async () => {
    const name = existsSync(folder) && readdirSync(folder).find((entry) => /^run-run_\w+\.json$/.test(entry))
    if (!name) return undefined
    const record = JSON.parse(readFileSync(join(folder, name), 'utf8')) as RunRecord
    return record.game !== null && record
  })
}

export const isGone = ({ supervisor, game }: RunRecord) => !isAlive(supervisor) && !(game && isAlive(game))

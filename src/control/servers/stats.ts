// What games use and who plays on them, as the agent has measured it.
import type { Agent } from '../../contract/agent.ts'
import { fail } from '../../contract/errors.ts'
import type { Players } from '../../contract/games/players.ts'
import type { Stats, StatsPoint, StatsQuery } from '../../contract/games/stats.ts'
import type { Db } from '../db/tables.ts'
import type { Actor } from '../http/actor.ts'
import { requireServerFiles } from './access.ts'

const HEARTBEAT_MS = 15_000

export interface GamesStats {
  readPlayers(actor: Actor, serverId: string): Promise<Players>
  read(actor: Actor, serverId: string, query: StatsQuery): Promise<Stats>
  /** Points as they are measured, oldest first, each once, until the signal says stop. An empty batch is a sign of life. */
  follow(actor: Actor, serverId: string, lastId: string | null, signal: AbortSignal): AsyncGenerator<StatsPoint[]>
}

export function createStats({ db, agent: { games } }: { db: Db; agent: Pick<Agent, 'games'> }): GamesStats {
  return {
    async readPlayers(actor, serverId) {
      await requireServerFiles(db, actor, serverId)
      return await games.readPlayers({ serverId })
    },

    async read(actor, serverId, { since, step = null }) {
      await requireServerFiles(db, actor, serverId)
      return await games.readStats({
        serverId,
        since: since === undefined ? null : Date.parse(since),
        stepSeconds: step,
      })
    },

    async *follow(actor, serverId, lastId, signal) {
      await requireServerFiles(db, actor, serverId)
      let position = lastId === null ? null : timeOf(lastId)
      if (position === null) position = (await games.followStats({ serverId, after: null, waitMs: 0 })).position
      // Says that the stream has begun.
      yield []
      while (!signal.aborted) {
        const batch = await games.followStats({ serverId, after: position, waitMs: HEARTBEAT_MS }, signal)
        position = batch.position
        yield batch.points
      }
    },
  }
}

function timeOf(lastId: string): number {
  if (!/^\d{1,15}$/.test(lastId)) throw fail('invalid_request', 'Last-Event-ID is not the time of a point.')
  return Number(lastId)
}

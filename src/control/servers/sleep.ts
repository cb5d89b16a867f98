// Whether the game of a server sleeps while nobody plays. The row is authoritative; the agent has a copy of it, from the start of
// the game on.
import type { Logger } from 'pino'
import type { Agent } from '../../contract/agent.ts'
import { invalidField } from '../../contract/errors.ts'
import type { SleepSetting } from '../../contract/games/sleep.ts'
import type { Template } from '../../contract/games/template-format.ts'
import { createKeyedMutex } from '../../kit/waiting/mutex.ts'
import type { Db, ServerRow } from '../db/tables.ts'
import { findServer } from './store.ts'

export interface SleepSettings {
  /** After the commit that changed it. Never throws: the change has happened, whether or not the agent knows it yet. */
  apply(serverId: string): Promise<void>
}

export const sleepOf = ({ sleep_after_minutes: afterMinutes }: ServerRow): SleepSetting | null =>
  afterMinutes === null ? null : { afterMinutes }

/** A game of which nobody can tell whether it is played would never sleep, and nobody should believe that it does. */
export function requireSleepable(template: Template | undefined): void {
  const tellsPlayers = template?.query !== undefined || (template?.joins !== undefined && template.leaves !== undefined)
  if (tellsPlayers && (template?.ports ?? []).length > 0) return
  const needed = 'players by `query` or by `joins` and `leaves`, and the port that they come to'
  throw invalidField('/sleep', `needs a template that tells ${needed}; null turns it off`)
}

export function createSleepSettings(deps: { db: Db; agent: Pick<Agent, 'games'>; log: Logger }): SleepSettings {
  const { db, agent, log } = deps
  const mutex = createKeyedMutex()
  return {
    /** Reads in its turn: whichever of several changes comes last here, it is the newest one that is applied. */
    apply: (serverId) =>
      mutex(serverId, async () => {
        const server = await findServer(db, serverId)
        if (server?.status === 'ready') await agent.games.setSleep({ serverId, sleep: sleepOf(server) })
      }).catch((error: unknown) => {
        log.error(
          { err: error, serverId },
          'when a game sleeps could not be handed to the agent; it is at its next start',
        )
      }),
  }
}

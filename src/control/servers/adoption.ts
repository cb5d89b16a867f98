// A server that only its backups still know.
import type { AgentServers } from '../../contract/agent.ts'
import type { Activity } from '../activity/service.ts'
import type { Db } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { newServerRow } from './present.ts'
import * as store from './store.ts'

/** Makes it again, without its files. Answers false if it is there. */
export type Adopt = (actor: Actor, serverId: string, name: string | null) => Promise<boolean>

export function createAdoption({
  db,
  agent,
  activity,
  clock,
}: {
  db: Db
  agent: { servers: Pick<AgentServers, 'create'> }
  activity: Pick<Activity, 'record'>
  clock: { now(): number }
}): Adopt {
  return async (actor, serverId, name) => {
    if (await store.findServer(db, serverId)) return false
    await agent.servers.create({ serverId })
    const row = newServerRow(serverId, { name: name ?? `Recovered ${serverId}` }, clock.now())
    return transact(db, {}, async (trx) => {
      if (!(await store.insertServerIfAbsent(trx, row))) return false
      await activity.record(trx, actor, 'server.created', serverId, { name: row.name, game: null, port: null })
      return true
    })
  }
}

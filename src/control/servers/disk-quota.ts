// Makes the agent enforce the disk quota that was committed last. The row is authoritative; the agent has a copy of it,
// and a copy that could not be made is made at the next start or when disk usage is next measured.
import type { Logger } from 'pino'
import type { Agent } from '../../contract/agent.ts'
import { createKeyedMutex } from '../../kit/waiting/mutex.ts'
import type { Db } from '../db/tables.ts'
import { findServer, listReadyIds } from './store.ts'

export interface Quotas {
  /** After the commit that changed it. Never throws: the change has happened, whether or not the agent knows it yet. */
  apply(serverId: string): Promise<void>
  /** At the start: what a crash between a commit and its `apply` has left out. */
  applyAll(): Promise<void>
}

export function createQuotas(deps: { db: Db; agent: Pick<Agent, 'files'>; log: Logger }): Quotas {
  const { db, agent, log } = deps
  const mutex = createKeyedMutex()

  /** Reads in its turn: whichever of several changes comes last here, it is the newest one that is applied. */
  async function copy(serverId: string): Promise<void> {
    const server = await findServer(db, serverId)
    if (server?.status !== 'ready') return
    await agent.files.setQuota({ serverId, quotaBytes: server.limit_disk_bytes, maxEntries: server.limit_entries })
  }

  const apply: Quotas['apply'] = (serverId) =>
    mutex(serverId, () => copy(serverId)).catch((error: unknown) => {
      log.error({ err: error, serverId }, 'a quota could not be handed to the agent; it is tried again')
    })

  return {
    apply,
    async applyAll() {
      for (const serverId of await listReadyIds(db)) await apply(serverId)
    },
  }
}

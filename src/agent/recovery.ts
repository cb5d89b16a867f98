// The store of backups and the folders of servers, for a recovery: of the agent, no more than that needs. Nothing of it is started.
import type { Logger } from 'pino'
import type { AgentBackups } from '../contract/agent/agent-backups.ts'
import type { AgentServers } from '../contract/agent.ts'
import { createAgentBackups } from './backups/index.ts'
import type { RepositoryConfig } from './backups/store/repository.ts'
import { createHealedRecorder } from './healed.ts'
import { createOwnJournal } from './journal/own-journal.ts'
import { layout as layoutOf } from './layout.ts'
import { createServerFolders } from './servers.ts'

export interface RecoveryAgent {
  backups: Pick<AgentBackups, 'list' | 'heal' | 'setLock'>
  servers: Pick<AgentServers, 'create'>
  stop(): Promise<void>
}

export function createRecoveryAgent(deps: {
  dataDir: string
  backupKey: Buffer | null
  openOffsite: RepositoryConfig['offsite']
  clock: { now(): number }
  log: Logger
}): RecoveryAgent {
  const { dataDir, backupKey: key, openOffsite: offsite, clock, log } = deps
  const layout = layoutOf(dataDir)
  const journal = createOwnJournal(layout, deps)
  const backups = createAgentBackups({
    layout,
    server: () => {
      throw new Error('a recovery touches no files of a server')
    },
    key,
    offsite,
    onHealed: createHealedRecorder({ journal, log }),
    now: clock.now,
    onUnexpected: (error, serverId) => log.error({ err: error, serverId }, 'a recovery met a restore'),
  })
  return {
    backups,
    servers: { create: ({ serverId }) => createServerFolders(layout, serverId) },
    async stop() {
      journal.stop()
      await backups.stop()
      journal.close()
    },
  }
}

// One machine's disk and processes behind the Agent port.
import type { Logger } from 'pino'
import type { Agent } from '../contract/agent.ts'
import { fail } from '../contract/errors.ts'
import type { Forward } from '../http/forward.ts'
import { createFacts } from './facts.ts'
import { createAgentFiles } from './files/index.ts'
import { createLinkRevocations } from './http/revocations.ts'
import { layout as layoutOf } from './layout.ts'
import { createAgentServers } from './servers.ts'
import { createTasks } from './tasks.ts'

export interface AgentDeps {
  dataDir: string
  /** How long deleted files are kept. */
  trashKeepMs: number
  clock: { now(): number }
  log: Logger
}

export interface LocalAgent extends Agent {
  forward: Forward
  /** Goes on with what a crash has cut short. */
  start(): Promise<void>
  stop(): Promise<void>
}

export function createAgent({ dataDir, trashKeepMs, clock, log }: AgentDeps): LocalAgent {
  const layout = layoutOf(dataDir)
  const facts = createFacts(layout.facts, clock)
  const files = createAgentFiles({
    layout,
    trashKeepMs,
    now: clock.now,
    onUnexpected: (error, serverId) => log.error({ err: error, serverId }, 'upkeep of files failed'),
  })
  const servers = createAgentServers(layout, files.forget)
  const tasks = createTasks({
    handlers: files.handlers,
    onUnexpected: (error, taskId) => log.error({ err: error, taskId }, 'task failed'),
  })
  return {
    servers,
    files,
    tasks,
    facts,
    forward: async () => {
      throw fail('agent_unreachable')
    },
    links: createLinkRevocations(layout.revoked, clock),
    async start() {
      await servers.recover()
      await files.start()
    },
    async stop() {
      facts.stop()
      await tasks.stop()
      await files.stop()
    },
  }
}

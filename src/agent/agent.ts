// One machine's disk and processes behind the Agent port.
import type { Logger } from 'pino'
import type { Agent } from '../contract/agent.ts'
import { createFacts } from './facts.ts'
import { createLinkRevocations } from './http/revocations.ts'
import { layout as layoutOf } from './layout.ts'
import { createAgentServers } from './servers.ts'
import { createTasks } from './tasks.ts'

export interface AgentDeps {
  dataDir: string
  clock: { now(): number }
  log: Logger
}

export interface LocalAgent extends Agent {
  /** Goes on with what a crash has cut short. */
  start(): Promise<void>
  stop(): Promise<void>
}

export function createAgent({ dataDir, clock, log }: AgentDeps): LocalAgent {
  const layout = layoutOf(dataDir)
  const servers = createAgentServers(layout)
  const tasks = createTasks({
    handlers: {},
    onUnexpected: (error, taskId) => log.error({ err: error, taskId }, 'task failed'),
  })
  return {
    servers,
    tasks,
    facts: createFacts(layout.facts, clock),
    links: createLinkRevocations(layout.revoked, clock),
    start: () => servers.recover(),
    stop: () => tasks.stop(),
  }
}

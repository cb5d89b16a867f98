// One machine's disk and processes behind the Agent port.
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Agent } from '../contract/agent.ts'
import type { Forward } from '../http/forward.ts'
import { createSignedLinks } from '../http/signed-links.ts'
import { createFacts } from './facts.ts'
import { createAgentFiles } from './files/index.ts'
import { createForward } from './http/content.ts'
import { createLinkDoor } from './http/link-door.ts'
import { createLinkRevocations } from './http/revocations.ts'
import { agentRoutes } from './http/routes.ts'
import { createTusUploads } from './http/tus-uploads.ts'
import { layout as layoutOf } from './layout.ts'
import { createAgentServers } from './servers.ts'
import { createTasks } from './tasks.ts'

export interface AgentDeps {
  dataDir: string
  /** How long deleted files are kept. */
  trashKeepMs: number
  /** What control signs links with. */
  linksKey: Buffer
  clock: { now(): number }
  log: Logger
}

export interface LocalAgent extends Agent {
  forward: Forward
  /** A Fastify plugin: the doors that signed links open. */
  routes(app: FastifyInstance): Promise<void>
  /** Goes on with what a crash has cut short. */
  start(): Promise<void>
  stop(): Promise<void>
}

export function createAgent({ dataDir, trashKeepMs, linksKey, clock, log }: AgentDeps): LocalAgent {
  const layout = layoutOf(dataDir)
  const facts = createFacts(layout.facts, clock)
  const files = createAgentFiles({
    layout,
    trashKeepMs,
    now: clock.now,
    onUnexpected: (error, serverId) => log.error({ err: error, serverId }, 'upkeep of files failed'),
  })
  const revocations = createLinkRevocations(layout.revoked, clock)
  const door = createLinkDoor({ links: createSignedLinks(linksKey, clock), revocations, clock })
  const uploads = createTusUploads({
    serversFolder: layout.servers,
    files,
    facts,
    door,
    clock,
    onUnexpected: (error, serverId) => log.error({ err: error, serverId }, 'upkeep of uploads failed'),
  })
  const servers = createAgentServers(layout, (serverId) => {
    uploads.forget(serverId)
    files.forget(serverId)
  })
  const tasks = createTasks({
    handlers: files.handlers,
    onUnexpected: (error, taskId) => log.error({ err: error, taskId }, 'task failed'),
  })
  return {
    servers,
    files,
    tasks,
    facts,
    forward: createForward({ files, facts, door }),
    routes: async (app) => agentRoutes(app, { files, facts, door, uploads }),
    links: revocations,
    async start() {
      await servers.recover()
      await files.start()
      await uploads.start()
    },
    async stop() {
      facts.stop()
      uploads.stop()
      await tasks.stop()
      await files.stop()
    },
  }
}

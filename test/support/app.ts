// The app as main.ts builds it, not listening: for tests that look at its routes.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { pino } from 'pino'
import { createAgent } from '../../src/agent/agent.ts'
import { buildApp } from '../../src/control/app.ts'
import { readConfig } from '../../src/control/config.ts'
import { openDatabase } from '../../src/control/db/database.ts'
import { migrate } from '../../src/control/db/migrate.ts'
import { MIGRATIONS } from '../../src/control/db/migrations/index.ts'
import { openProviders } from '../../src/control/subdomains/providers.ts'
import type { Panel } from '../../src/http/panel.ts'
import { SHIPPED_TEMPLATES } from './shipped-templates.ts'

export async function withBuiltApp(
  work: (app: FastifyInstance, routes: readonly RouteOptions[]) => Promise<void>,
  { panel = null }: { panel?: Panel | null } = {},
): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-test-'))
  const config = readConfig({ GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_RATE_LIMIT: '0' })
  const log = pino({ level: 'silent' })
  const clock = { now: () => Date.now() }
  const database = openDatabase({ dataDir, url: null, onBroken: () => {} })
  await migrate(database.db, database.engine, MIGRATIONS)
  const secret = Buffer.alloc(32)
  const agent = createAgent({ dataDir, trashKeepMs: 0, linksKey: secret, clock, log })
  const providers = await openProviders([], { host: '127.0.0.1', port: 0, directory: dataDir })
  const { forward } = agent
  const app = await buildApp({
    config,
    version: '0',
    database,
    agent,
    forward,
    ownUrl: () => 'http://localhost',
    providers,
    templates: SHIPPED_TEMPLATES,
    secret,
    clock,
    log,
    panel,
  })
  await app.http.ready()
  try {
    await work(app.http, app.routes)
  } finally {
    await app.http.close()
    await agent.stop()
    await database.close()
    await rm(dataDir, { recursive: true, force: true })
  }
}

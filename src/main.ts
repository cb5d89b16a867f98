// The composition root: config, lock, database, agent, control, listen. The one file that sees everything.
import { mkdirSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { pino } from 'pino'
import { createAgent } from './agent/agent.ts'
import { findStore, listStore, type Taken, takeOver } from './agent/backups/found-store.ts'
import { layout } from './agent/layout.ts'
import type { StoredBackup } from './contract/agent-backups.ts'
import type { Recovery } from './contract/backups.ts'
import { buildApp } from './control/app.ts'
import { type Config, ConfigFault } from './control/config.ts'
import { openDatabase } from './control/db/database.ts'
import { lockDataDir } from './control/db/lock.ts'
import { migrate } from './control/db/migrate.ts'
import { MIGRATIONS } from './control/db/migrations/index.ts'
import { keyFor, loadSecret } from './control/secrets.ts'
import { openProviders } from './control/subdomains/providers.ts'

export { StoreFault } from './agent/backups/found-store.ts'
export { ConfigFault, readConfig } from './control/config.ts'
export { DataDirInUse } from './control/db/lock.ts'

export interface Service {
  /** Where it can be reached, without a trailing slash. */
  url: string
  /** The admin token's value when this start has made it; it is not to be had again. */
  newAdminToken: string | null
  /** Where the embedded DNS server answers, if a zone asked for it. */
  dns: { host: string; port: number } | null
  stop(): Promise<void>
}

export const VERSION: string = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version

/** What is undone, last first, when the service stops or does not come up. */
type CleanUp = (() => unknown)[]

async function undo(cleanUp: CleanUp): Promise<void> {
  for (const step of cleanUp.reverse()) await step()
}

/** Everything but the door, and nothing of it begun. */
async function assemble(config: Config, cleanUp: CleanUp) {
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
  const lock = lockDataDir(config.dataDir)
  cleanUp.push(() => lock.release())
  const log = pino({ level: config.logLevel })
  const clock = { now: () => Date.now() }
  const database = openDatabase({
    dataDir: config.dataDir,
    url: config.databaseUrl,
    onBroken: (error) => log.warn({ err: error }, 'a database connection broke'),
  })
  cleanUp.push(database.close)
  for (const name of await migrate(database.db, database.engine, MIGRATIONS)) log.info({ migration: name }, 'migrated')

  const secret = loadSecret(config.dataDir, config.secret)
  const agent = createAgent({
    dataDir: config.dataDir,
    trashKeepMs: config.trashHours * 3600_000,
    linksKey: keyFor(secret, 'links'),
    backupKey: config.backupKey,
    backupBytesPerSecond: config.backupBytesPerSecond,
    clock,
    log,
  })
  cleanUp.push(agent.stop)
  const providers = await openProviders(config.zones, {
    host: config.dnsHost,
    port: config.dnsPort,
    directory: join(config.dataDir, 'dns'),
  })
  cleanUp.push(providers.close)
  const agentUrl = () => urlOf(config, app.http.server.address() as AddressInfo)
  const { forward } = agent
  const app = await buildApp({
    config,
    version: VERSION,
    database,
    agent,
    forward,
    agentUrl,
    providers,
    secret,
    clock,
    log,
  })
  return { agent, app, providers, agentUrl }
}

export async function startService(config: Config): Promise<Service> {
  const cleanUp: CleanUp = []
  try {
    const { agent, app, providers, agentUrl } = await assemble(config, cleanUp)
    cleanUp.push(app.stop)
    await app.http.register(agent.routes)
    const { show, warning } = await app.tokens.ensureAdmin(config.adminToken)
    if (warning) throw new ConfigFault([warning])
    await agent.start()
    await app.start()
    await app.http.listen({ host: config.host, port: config.port })
    cleanUp.push(() => app.http.close())
    return { url: agentUrl(), newAdminToken: show, dns: providers.embedded, stop: () => undo(cleanUp) }
  } catch (error) {
    await undo(cleanUp)
    throw error
  }
}

export interface RecoveredStore {
  store: { dir: string; storeId: string; isEncrypted: boolean }
  /** Everything that the store holds. */
  backups: StoredBackup[]
  /** What was copied, and what the database has learnt; null where the store was only to be looked at. */
  done: { taken: Taken; recovery: Recovery } | null
}

/** For the day when the database is gone: from a store, wherever it lies, to a data directory that has its backups. */
export async function recoverStore(
  config: Config,
  request: { dir: string; isListOnly: boolean; report: (done: Taken, total: Taken) => void },
): Promise<RecoveredStore> {
  const found = await findStore(resolve(request.dir), config.backupKey)
  const { dir, format } = found
  const store = { dir, storeId: format.storeId, isEncrypted: format.keyCheck !== null }
  const answer = { store, backups: await listStore(found) }
  if (request.isListOnly) return { ...answer, done: null }
  const cleanUp: CleanUp = []
  try {
    // Nobody is to be answered, so no name server has to stand up.
    const { app } = await assemble({ ...config, zones: [] }, cleanUp)
    const taken = await takeOver(found, answer.backups, layout(config.dataDir).backups, request.report)
    return { ...answer, done: { taken, recovery: await app.recover() } }
  } finally {
    await undo(cleanUp)
  }
}

function urlOf(config: Config, { address, port, family }: AddressInfo): string {
  if (config.publicUrl) return config.publicUrl
  const host = address === '0.0.0.0' || address === '::' ? 'localhost' : family === 'IPv6' ? `[${address}]` : address
  return `http://${host}:${port}`
}

// The app as main.ts builds it, around a database and an agent with barriers.
import './disk-barriers.ts'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { createAgent, type LocalAgent } from '../../src/agent/agent.ts'
import { buildApp } from '../../src/control/app.ts'
import { readConfig } from '../../src/control/config.ts'
import { type Engine, openDatabase } from '../../src/control/db/database.ts'
import { migrate } from '../../src/control/db/migrate.ts'
import { MIGRATIONS } from '../../src/control/db/migrations/index.ts'
import { keyFor } from '../../src/control/secrets.ts'
import { openProviders } from '../../src/control/subdomains/providers.ts'
import { freshDatabase } from '../support/engines.ts'
import { SHIPPED_TEMPLATES } from '../support/shipped-templates.ts'
import { LOCAL_DNS } from '../support/subdomains.ts'
import { ACTOR_HEADER, asActor, currentActor, stillMs } from './actors.ts'
import { installBarriers, withBarriers, withForwardBarriers } from './barriers.ts'
import { postgresSide, sqliteSide } from './side.ts'

export const ZONE = 'play.test'
const ZONES = JSON.stringify([{ zone: ZONE, provider: 'embedded', target: '203.0.113.7', ttl: 60 }])

export interface Reply {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
  body: any
}

export interface CallOptions {
  token?: string | undefined
  body?: object
  payload?: Payload
}

/** Sent as it is, over a socket. */
interface Payload {
  type: string
  bytes: Buffer
}

type CleanUp = (() => Promise<void>)[]

export interface Stage {
  engine: Engine
  dataDir: string
  agent: LocalAgent
  /** Runs in the context of its caller, from the door to the disk. */
  call(method: string, path: string, options?: CallOptions): Promise<Reply>
  /** What is committed; a parameter is written `?`. */
  look<Row>(sql: string, ...values: string[]): Promise<Row[]>
  /** Whether one of these backends waits for a lock that another transaction has. */
  isBlocked(backends: ReadonlySet<number>): Promise<boolean>
  /** What was written is seen before it is durable: resolves when its writers have gone on, and have looked for more to do. */
  writersGoOn(): Promise<void>
  stop(): Promise<void>
}

export async function openStage(engine: Engine): Promise<Stage> {
  const cleanUp: CleanUp = []
  const stop = async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  }
  try {
    return { ...(await open(engine, cleanUp)), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function open(engine: Engine, cleanUp: CleanUp): Promise<Omit<Stage, 'stop'>> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-orders-'))
  cleanUp.push(() => rm(dataDir, { recursive: true, force: true }))
  const databaseUrl = await freshDatabase(engine)
  const adminToken = `gk_admin_${randomBytes(32).toString('hex')}`
  const { app, agent, db } = await assemble(dataDir, databaseUrl, cleanUp)
  const side = databaseUrl ? postgresSide(databaseUrl) : sqliteSide(join(dataDir, 'gamekeeper.db'))
  cleanUp.push(side.close)
  await app.tokens.ensureConfigured(adminToken)
  await agent.start()
  cleanUp.push(app.stop)
  await app.start()
  await app.http.listen({ host: '127.0.0.1', port: 0 })
  cleanUp.push(() => app.http.close())
  const doorUrl = openDoor(app.http.server)

  return {
    engine,
    dataDir,
    agent,
    async call(method, path, { token = adminToken, body, payload } = {}) {
      const url = path.startsWith('http') ? path.replace(/^https?:..[^/]+/, '') : `/v1/game${path}`
      const headers = { authorization: `Bearer ${token}` }
      if (payload) return send(doorUrl + url, { method, headers, payload })
      const reply = await app.http.inject({ method: method as 'GET', url, headers, ...(body ? { payload: body } : {}) })
      return { status: reply.statusCode, body: parsed(reply.payload) }
    },
    look: side.look as Stage['look'],
    isBlocked: side.isBlocked,
    async writersGoOn() {
      // Each is durable after all that were made before it; the second, after what these caused at once.
      for (let write = 0; write < 2; write++) await db.deleteFrom('jobs').where('id', '=', '').execute()
    },
  }
}

/** As main.ts does it, with barriers around the agent; those of the database are in its driver. */
async function assemble(dataDir: string, url: string | null, cleanUp: CleanUp) {
  installBarriers()
  const config = readConfig({
    GAMEKEEPER_DATA_DIR: dataDir,
    GAMEKEEPER_RATE_LIMIT: '0',
    GAMEKEEPER_ZONES: ZONES,
    ...LOCAL_DNS,
    ...(url ? { GAMEKEEPER_DATABASE_URL: url } : {}),
  })
  const log = pino({ level: process.env.ORDERS_LOG ?? 'silent' })
  const clock = { now: () => Date.now() }
  const database = openDatabase({ dataDir, url, onBroken: () => {} })
  cleanUp.push(database.close)
  await migrate(database.db, database.engine, MIGRATIONS)
  const secret = randomBytes(32)
  const agent = createAgent({ dataDir, trashKeepMs: 24 * 3600_000, linksKey: keyFor(secret, 'links'), clock, log })
  cleanUp.push(agent.stop)
  const directory = join(dataDir, 'dns')
  const providers = await openProviders(config.zones, { host: config.dnsHost, port: config.dnsPort, directory })
  cleanUp.push(providers.close)
  const app = await buildApp({
    config,
    version: '0',
    database,
    agent: withBarriers(agent),
    forward: withForwardBarriers(agent.forward),
    ownUrl: () => 'http://localhost',
    providers,
    templates: SHIPPED_TEMPLATES,
    secret,
    clock,
    log,
  })
  await app.http.register(agent.routes)
  return { app, agent, db: database.db }
}

/** Bytes that flow need a socket, which no context crosses: the header says whose they are. */
function openDoor(server: Server): string {
  const emit = server.emit.bind(server)
  server.emit = (event: string, ...values: unknown[]) => {
    const request = event === 'request' ? (values[0] as IncomingMessage) : undefined
    return asActor(request?.headers[ACTOR_HEADER]?.toString(), () => emit(event, ...values))
  }
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function send(
  url: string,
  { method, headers, payload }: { method: string; headers: Record<string, string>; payload: Payload },
): Promise<Reply> {
  const actor = currentActor()
  const response = await fetch(url, {
    method,
    headers: { ...headers, 'content-type': payload.type, ...(actor ? { [ACTOR_HEADER]: actor.id } : {}) },
    body: payload.bytes as BodyInit,
  })
  return { status: response.status, body: parsed(await response.text()) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A job that asks the agent again and again never stands still: it is given up after the longer time. */
const STILL_MS = 120_000
const STUCK_MS = 300_000

/** Until everything that is under way for a server has ended, what the agent noted included. */
export async function settle(stage: Stage, serverId: string): Promise<string[]> {
  const startedAt = performance.now()
  for (;;) {
    const active = await activeJobs(stage, serverId)
    if (active.length === 0 && (await areFactsKept(stage))) {
      await stage.writersGoOn()
      return []
    }
    const waitedMs = performance.now() - startedAt
    if (Math.min(stillMs(), waitedMs) > STILL_MS || waitedMs > STUCK_MS)
      return active.map(({ kind, status }) => `${kind} ${status}`)
    await delay(5)
  }
}

/** Somebody else reads and forgets them: what is forgotten while it is read is on its way. */
const areFactsKept = (stage: Stage) =>
  stage.agent.facts.read({ limit: 1, waitMs: 0 }).then(
    (facts) => facts.length === 0,
    () => false,
  )

export function activeJobs(stage: Stage, serverId: string): Promise<{ id: string; kind: string; status: string }[]> {
  const active = `select id, kind, status from jobs where server_id = ? and status in ('queued', 'running') order by id`
  return stage.look(active, serverId)
}

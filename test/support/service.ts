// The real service for a test: a real port, a real database, a real disk, all thrown away afterwards.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MirrorTarget } from '../../src/agent/offsite/index.ts'
import { readConfig } from '../../src/control/config.ts'
import type { Engine } from '../../src/control/db/database.ts'
import { startService } from '../../src/main.ts'
import { type CallOptions, type Reply, sendCall } from './call.ts'
import { holdAgainstContract } from './conformance.ts'
import { freshDatabase } from './engines.ts'
import { endGames } from './games.ts'

export type { CallOptions, Reply } from './call.ts'

export interface TestService {
  url: string
  dataDir: string
  databaseUrl: string | null
  adminToken: string
  dns: { host: string; port: number } | null
  call(method: string, path: string, options?: CallOptions): Promise<Reply>
  /** A token with less than everything. */
  mint(scopes: string[], servers?: string[] | '*', more?: object): Promise<{ id: string; token: string }>
  createServer(body?: object): Promise<{ id: string; name: string }>
  /** Stops and starts on the same data, with these settings changed, or with another mirror. */
  restart(changed?: Record<string, string>, mirror?: MirrorTarget | null): Promise<void>
  /** Stops and leaves the data where it is. */
  halt(): Promise<void>
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export async function startTestService(
  options: { engine?: Engine; env?: Record<string, string>; mirror?: MirrorTarget | null } = {},
): Promise<TestService> {
  const dataDir = options.env?.GAMEKEEPER_DATA_DIR ?? (await mkdtemp(join(tmpdir(), 'gamekeeper-test-')))
  const databaseUrl = await freshDatabase(options.engine ?? 'sqlite')
  const adminToken = `gk_admin_${randomBytes(32).toString('hex')}`
  const env = {
    GAMEKEEPER_PORT: '0',
    GAMEKEEPER_DATA_DIR: dataDir,
    GAMEKEEPER_ADMIN_TOKEN: adminToken,
    GAMEKEEPER_LOG_LEVEL: 'fatal',
    GAMEKEEPER_RATE_LIMIT: '0',
    ...(databaseUrl ? { GAMEKEEPER_DATABASE_URL: databaseUrl } : {}),
    ...options.env,
  }
  let { mirror } = options
  const start = () => startService(readConfig(env), undefined, undefined, { mirror })
  let service = await start()

  async function call(method: string, path: string, options: CallOptions = {}): Promise<Reply> {
    const reply = await sendCall(service.url, adminToken, method, path, options)
    await holdAgainstContract(service.url, method, path, reply)
    return reply
  }

  let stopped = false
  const halt = async () => {
    if (!stopped) await service.stop()
    stopped = true
  }
  const stop = async () => {
    await halt()
    endGames(dataDir)
    await rm(dataDir, { recursive: true, force: true })
  }

  return {
    get url() {
      return service.url
    },
    dataDir,
    databaseUrl,
    adminToken,
    get dns() {
      return service.dns
    },
    call,
    async mint(scopes, servers = '*', more = {}) {
      const { body } = await call('POST', '/tokens', { body: { name: 'test', scopes, servers, ...more } })
      return { id: body.id, token: body.token }
    },
    async createServer(body = {}) {
      return (await call('POST', '/servers', { body: { name: 'Castle', ...body } })).body
    },
    async restart(changed = {}, changedMirror = mirror) {
      await halt()
      Object.assign(env, changed)
      mirror = changedMirror
      service = await start()
      stopped = false
    },
    halt,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

// A house with two tenants: the real service as a process of its own, an attacker with a token for one server, and a victim
// with a token for another.
import { after, type TestContext } from 'node:test'
import { layout } from '../../../src/agent/layout.ts'
import type { Engine } from '../../../src/control/db/database.ts'
import { createKeeper, type Keeper } from '../../faults/history/keeper.ts'
import { type CallOptions, type Reply, sendCall } from '../../support/call.ts'
import { until } from '../../support/until.ts'
import { ENGINE } from './engine.ts'
import { TIMES } from './size.ts'

export interface Tenant {
  readonly url: string
  readonly token: string
  readonly tokenId: string
  readonly serverId: string
  /** Where the game of this server would write, on the disk. */
  readonly folder: string
  call(method: string, path: string, options?: CallOptions): Promise<Reply>
  put(path: string, content: Buffer | string): Promise<Reply>
  /** The job once it has ended, however it has. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
  ended(jobId: string): Promise<any>
}

export interface Scene {
  readonly keeper: Keeper
  readonly attacker: Tenant
  readonly victim: Tenant
  /** What the service may take, of the heap and in all. */
  readonly memory: Memory
  /** As the admin. */
  call(method: string, path: string, options?: CallOptions): Promise<Reply>
  say(line: string): void
}

interface Memory {
  heapMiB: number
  rssMiB: number
}

export interface SceneOptions {
  /** `ENGINE` by default. */
  engine?: Engine
  /** Of the attacker; everything that a tenant has, by default. */
  scopes?: readonly string[]
  /** Of the attacker's server. */
  limits?: { diskBytes?: number; entries?: number; backups?: number; subdomains?: number }
  /** Settings of the service. The rate limit is the one that counts by default. */
  settings?: Record<string, string>
  memory?: Memory
  /** A command that the service runs under, such as `prlimit --nofile=80`. */
  under?: readonly string[]
}

export const TENANT_SCOPES: readonly string[] = [
  'servers:read',
  'files:read',
  'files:write',
  'backups:read',
  'backups:write',
  'subdomains:read',
  'subdomains:write',
  'activity:read',
]
const WATCHDOG = new URL('../../support/watchdog.ts', import.meta.url).href
/** A small machine: what a tenant can make grow grows beyond it soon. */
const SMALL: Memory = { heapMiB: 256, rssMiB: 640 }

/**
 * Two tenants that are new, in a service that a file's scenes of the same options share: it starts once, and what one attack has left in it
 * is there in the next. In the whole form, which judges the victim by the clock, each has a service of its own.
 */
export async function openScene(t: TestContext, options: SceneOptions = {}): Promise<Scene> {
  const { scopes = TENANT_SCOPES, limits = {}, memory = SMALL } = options
  const keeper = await serviceFor(options)
  if (TIMES > 1) t.after(() => keeper.dispose())
  const call: Scene['call'] = (method, path, more) => sendCall(keeper.url, keeper.token, method, path, more)
  return {
    keeper,
    memory,
    call,
    say: (line) => t.diagnostic(line),
    attacker: await createTenant(keeper, call, 'Attacker', scopes, limits),
    victim: await createTenant(keeper, call, 'Victim', TENANT_SCOPES),
  }
}

const shared = new Map<string, Keeper>()
after(async () => {
  for (const keeper of shared.values()) await keeper.dispose()
})

async function serviceFor({
  engine = ENGINE,
  settings = {},
  memory = SMALL,
  under = [],
}: SceneOptions): Promise<Keeper> {
  const key = JSON.stringify([engine, settings, memory, under])
  const open = shared.get(key)
  if (open && !open.isDown()) return open
  await open?.dispose()
  const keeper = await createKeeper(
    engine,
    {
      GAMEKEEPER_RATE_LIMIT: '6000',
      // With what the suite loads into every process.
      NODE_OPTIONS:
        `${process.env.NODE_OPTIONS ?? ''} --max-old-space-size=${memory.heapMiB} --import=${WATCHDOG}`.trim(),
      ...settings,
    },
    under,
  )
  if (TIMES === 1) shared.set(key, keeper)
  await keeper.start()
  return keeper
}

export async function createTenant(
  keeper: Keeper,
  asAdmin: Scene['call'],
  name: string,
  scopes: readonly string[],
  limits: object = {},
): Promise<Tenant> {
  const server = await asAdmin('POST', '/servers', { body: { name, limits } })
  const minted = await asAdmin('POST', '/tokens', { body: { name, scopes, servers: [server.body.id] } })
  if (minted.status !== 201) throw new Error(`${name} has no token: ${server.text} ${minted.text}`)
  const { id: tokenId, token } = minted.body
  const serverId: string = server.body.id
  const call: Tenant['call'] = (method, path, options) => sendCall(keeper.url, token, method, path, options)
  return {
    // Another after a restart.
    get url() {
      return keeper.url
    },
    token,
    tokenId,
    serverId,
    folder: layout(keeper.dataDir).server(serverId).files,
    call,
    put: (path, body) => call('PUT', `/files/${serverId}/content?path=${encodeURIComponent(path)}`, { body }),
    ended: (jobId) => jobEnded(call, serverId, jobId),
  }
}

const ENDED = ['completed', 'failed', 'cancelled']

export function jobEnded(call: Scene['call'], serverId: string, jobId: string) {
  return until(async () => {
    const { body } = await call('GET', `/servers/${serverId}/jobs/${jobId}`)
    return ENDED.includes(body.status) ? body : undefined
  })
}

// The service under test: a real process on a real disk and a real database, with the switchboard loaded into it. It is
// killed, stopped, frozen and started again on the same data.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Engine } from '../../../src/control/db/database.ts'
import { freePort } from '../../support/daemons.ts'
import { freshDatabase } from '../../support/engines.ts'
import { type ServiceProcess, spawnService } from '../../support/process.ts'
import { scratchBase } from '../../support/scratch.ts'
import { ALL_OFF, FIRST_SWITCHES, type Order, type Report, type Rule, type Switches } from './switches.ts'

const SWITCHBOARD = fileURLToPath(new URL('./switchboard.ts', import.meta.url))
export const ZONE = 'play.test'

export interface Keeper {
  readonly engine: Engine
  readonly dataDir: string
  readonly databaseUrl: string | null
  readonly token: string
  readonly dnsPort: number
  readonly url: string
  readonly pid: number
  /** How often it has been started. */
  readonly starts: number
  /** Whether it is down, or going down. */
  isDown(): boolean
  /** What the process has said, for the report of a fault. */
  output(): string
  start(): Promise<void>
  kill(): Promise<void>
  /** As an operator stops it. Answers the exit code. */
  stop(): Promise<number | NodeJS.Signals>
  freeze(): void
  thaw(): void
  /** Kept over a restart, so that a clock that was set back stays so. */
  set(switches: Partial<Switches>): Promise<void>
  /** The calls that were made while they were counted, and those that were struck. */
  seen(): Promise<{ sites: Record<string, number>; struck: string[] }>
  /** What a second process on the same database is started with. */
  env(): Record<string, string>
  dispose(): Promise<void>
}

/** `under`: a command that the service runs under, such as `prlimit`. */
export async function createKeeper(
  engine: Engine,
  settings: Record<string, string> = {},
  under: readonly string[] = [],
): Promise<Keeper> {
  const dataDir = mkdtempSync(join(scratchBase(), 'gamekeeper-history-'))
  const databaseUrl = await freshDatabase(engine)
  let dnsPort = await freePort()
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  let switches: Switches = ALL_OFF
  let service: ServiceProcess | undefined
  let isDown = true
  let starts = 0

  const env = () => ({
    GAMEKEEPER_DATA_DIR: dataDir,
    GAMEKEEPER_ADMIN_TOKEN: token,
    GAMEKEEPER_RATE_LIMIT: '0',
    GAMEKEEPER_DNS_HOST: '127.0.0.1',
    GAMEKEEPER_DNS_PORT: String(dnsPort),
    GAMEKEEPER_ZONES: JSON.stringify([{ zone: ZONE, provider: 'embedded', target: '203.0.113.7', ttl: 60 }]),
    ...(databaseUrl ? { GAMEKEEPER_DATABASE_URL: databaseUrl } : {}),
    ...settings,
    [FIRST_SWITCHES]: JSON.stringify(switches),
  })

  async function order(message: Order): Promise<Report> {
    if (!service || isDown) throw new Error('the service is down and takes no orders')
    const { child, output } = service
    const over = new AbortController()
    try {
      const answered = once(child, 'message', { signal: over.signal })
      const ended = once(child, 'exit', { signal: over.signal }).then(() => over.abort())
      // Whoever is not waited for has nothing to add.
      ended.catch(() => {})
      child.send(message, (error) => error && over.abort())
      const [report] = await answered
      return report as Report
    } catch (error) {
      throw new Error(`the service takes no orders any more: ${output().slice(-1500)}`, { cause: error })
    } finally {
      over.abort()
    }
  }

  /** Until it runs for the first time, another program may be given the port that was free a moment ago. */
  async function spawnKept(): Promise<ServiceProcess> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await spawnService(env(), { preload: SWITCHBOARD, under })
      } catch (error) {
        if (starts > 0 || attempt === 5 || !/has that port/.test(String(error))) throw error
        dnsPort = await freePort()
      }
    }
  }

  async function end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals> {
    isDown = true
    return (await service?.kill(signal)) ?? 0
  }

  return {
    engine,
    dataDir,
    databaseUrl,
    token,
    get dnsPort() {
      return dnsPort
    },
    get url() {
      return service?.url ?? ''
    },
    get pid() {
      return service?.pid ?? 0
    },
    get starts() {
      return starts
    },
    isDown: () => isDown || service?.child.exitCode !== null || service.child.signalCode !== null,
    output: () => service?.output() ?? '',
    async start() {
      service = await spawnKept()
      isDown = false
      starts++
    },
    async kill() {
      await end('SIGKILL')
    },
    stop: () => end('SIGTERM'),
    freeze: () => void service?.child.kill('SIGSTOP'),
    thaw: () => void service?.child.kill('SIGCONT'),
    async set(changed) {
      switches = { ...switches, ...changed }
      if (!isDown) await order({ kind: 'set', switches })
    },
    async seen() {
      const report = await order({ kind: 'sites' })
      if (report.kind !== 'sites') throw new Error('the switchboard answers something else')
      return report
    },
    env,
    async dispose() {
      if (service) await end('SIGKILL')
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** One call fails with this error number, by default the first that matches. */
export const failing = (match: string, errno: string, skip = 0, times = 1): Rule => ({
  match,
  skip,
  times,
  fault: { errno },
})

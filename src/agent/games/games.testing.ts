// The games of an agent on a real disk, for tests: with a clock that the test moves, and what the agent told of them.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { launchOf, putGame, type TestGame } from '../../../test/support/games.ts'
import { until } from '../../../test/support/until.ts'
import type { GameLimits } from '../../contract/agent/agent-games.ts'
import type { Launch, LaunchInstallStep } from '../../contract/games/launch.ts'
import type { PowerAction, PowerState } from '../../contract/games/power.ts'
import type { SleepSetting } from '../../contract/games/sleep.ts'
import { createAgent } from '../agent.ts'
import { createAgentFiles } from '../files/index.ts'
import type { ServerLock } from '../files/locks.ts'
import { PULL_OPTIONS } from '../files/pull/pull.ts'
import { createJournal, type NewFact } from '../journal/journal.ts'
import { layout as layoutOf } from '../layout.ts'
import { DEFAULT_GAMES_OPTIONS, type GamesOfAgent, type GamesOptions } from './games-deps.ts'
import { createAgentGames } from './index.ts'
import type { Presence } from './players/index.ts'
import type { GameRecord } from './power/game-record.ts'
import type { Timers } from './power/stop-ladder.ts'
import type { GameRuntime } from './runtime.ts'

const NEVER = new AbortController().signal
export const NO_LIMITS: GameLimits = { memoryBytes: null, cpuPercent: null, processes: null }

/** Time stands still until the test moves it. */
export function createManualTimers(): Timers & { advance(ms: number): void; pendingMs(): number[] } {
  let now = Date.now()
  const pending = new Set<{ at: number; work: () => void }>()
  return {
    now: () => now,
    after(ms, work) {
      const timer = { at: now + ms, work }
      pending.add(timer)
      return { [Symbol.dispose]: () => void pending.delete(timer) }
    },
    pendingMs: () => [...pending].map(({ at }) => at - now),
    advance(ms) {
      now += ms
      for (const timer of [...pending].filter(({ at }) => at <= now)) {
        pending.delete(timer)
        timer.work()
      }
    },
  }
}

export interface GamesHarness extends AsyncDisposable {
  games: GamesOfAgent
  facts: NewFact[]
  errors: unknown[]
  dataDir: string
  filesOf(serverId: string): string
  /** As whoever restores the files, or puts the server aside, holds them. */
  lockOf(serverId: string): ServerLock
  create(serverId: string, game: TestGame): Promise<void>
  setQuota(serverId: string, quotaBytes: number): Promise<void>
  power(serverId: string, action: PowerAction, change?: Partial<Launch>, limits?: GameLimits): Promise<boolean>
  /** Goes through the steps as a task of the agent does. */
  install(serverId: string, work: InstallOptions): Promise<{ steps: number }>
  /** Resolves once it is in the state. */
  reach(serverId: string, state: PowerState): Promise<void>
  linesOf(serverId: string): Promise<string[]>
  /** While there is no service: what it left on disk is changed. `restart` goes on from there. */
  edit(serverId: string, change: (record: GameRecord) => GameRecord): void
  /** As a service that was ended and started again: the games do not notice. */
  restart(): Promise<void>
}

export interface InstallOptions {
  steps: readonly LaunchInstallStep[]
  wipe?: boolean
  taskId?: string
  signal?: AbortSignal
  stopping?: AbortSignal
  change?: Partial<Launch>
}

export interface HarnessOptions {
  timers?: Timers
  autoRestart?: boolean
  sleep?: SleepSetting | null
  occupancy?: (serverId: string) => Presence
  /** Where the data directory is made. */
  parent?: string
  /** False: as on a machine that has none. */
  hasBubblewrap?: boolean
  findBubblewrap?: () => Promise<string | null>
  /** In the place of real ones. */
  runtime?: GameRuntime
  options?: Partial<GamesOptions>
  /** Of every start. */
  launch?: Partial<Launch>
  /** While it is recorded. */
  onFact?(fact: NewFact, harness: GamesHarness): Promise<unknown> | undefined
}

export async function openGames(setting: HarnessOptions = {}) {
  const { timers, autoRestart = true, sleep = null, occupancy, hasBubblewrap = true, parent = tmpdir() } = setting
  const { options = {}, launch = {} } = setting
  const dataDir = mkdtempSync(join(parent, 'gamekeeper-games-'))
  const layout = layoutOf(dataDir)
  const facts: NewFact[] = []
  const errors: unknown[] = []
  const serverIds = new Set<string>()
  const folders = createAgent({
    dataDir,
    trashKeepMs: 0,
    linksKey: Buffer.alloc(32),
    clock: { now: Date.now },
    log: pino({ level: 'silent' }),
  })
  const journal = createJournal({ folder: join(dataDir, 'other-journal'), now: Date.now, onUnexpected: () => {} })
  const files = createAgentFiles({
    layout,
    journal,
    // As if this machine were public.
    pullOptions: { ...PULL_OPTIONS, isAllowed: (address) => address === '127.0.0.1' },
    onUnexpected: (error) => errors.push(error),
  })

  const open = () =>
    createAgentGames({
      layout,
      journal: {
        async add(fact) {
          facts.push(fact)
          await setting.onFact?.(fact, harness)
        },
      },
      files,
      options: { ...DEFAULT_GAMES_OPTIONS, ...options },
      ...(timers ? { timers } : {}),
      ...(occupancy ? { occupancy } : {}),
      ...(setting.runtime ? { runtime: setting.runtime } : {}),
      ...(setting.findBubblewrap ? { findBubblewrap: setting.findBubblewrap } : {}),
      ...(hasBubblewrap ? {} : { findBubblewrap: async () => null }),
      onUnexpected: (error) => errors.push(error),
    })

  const harness: GamesHarness = {
    games: open(),
    facts,
    errors,
    dataDir,
    filesOf: (serverId) => layout.server(serverId).files,
    lockOf: (serverId) => files.server(serverId).lock,
    async create(serverId, game) {
      await folders.servers.create({ serverId })
      serverIds.add(serverId)
      putGame(layout.server(serverId).files, game)
    },
    setQuota: (serverId, quotaBytes) => files.setQuota({ serverId, quotaBytes, maxEntries: null }),
    async power(serverId, action, change = {}, limits = NO_LIMITS) {
      const request = { serverId, action, launch: launchOf({ ...launch, ...change }), limits, autoRestart, sleep }
      return (await harness.games.power(request)).isChange
    },
    install(serverId, { steps, wipe = false, taskId = 'job_install', signal = NEVER, stopping = NEVER, change = {} }) {
      const work = { kind: 'games.install' as const, launch: launchOf({ ...launch, ...change }), limits: NO_LIMITS }
      const context = { taskId, serverId, signal, stopping, report() {} }
      return harness.games.handlers['games.install']({ ...work, steps, wipe }, context)
    },
    async reach(serverId, state) {
      await until(async () => (await harness.games.read({ serverId })).power.state === state)
    },
    async linesOf(serverId) {
      const { lines } = await harness.games.readConsole({ serverId, before: null, limit: 500, q: null })
      return lines.map(({ text }) => text).reverse()
    },
    edit(serverId, change) {
      harness.games.stop()
      const file = join(layout.server(serverId).root, 'game', 'power.json')
      writeFileSync(file, JSON.stringify(change(JSON.parse(readFileSync(file, 'utf8')))))
    },
    async restart() {
      harness.games.stop()
      harness.games = open()
      await harness.games.start()
    },
    async [Symbol.asyncDispose]() {
      for (const serverId of serverIds) await harness.games.end(serverId)
      harness.games.stop()
      journal.close()
      await files.stop()
      await folders.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
  return harness
}

// What is seen of games from outside: who plays, and what each uses. One timer for all of them.
import { join } from 'node:path'
import type { AgentGames } from '../../contract/agent/agent-games.ts'
import { STATS_TIERS } from '../../contract/fixed-limits.ts'
import type { ServerFiles } from '../files/server-files.ts'
import type { NewFact } from '../journal/journal.ts'
import { createGamePlayers, type Presence } from './players/index.ts'
import type { Game } from './power/game-deps.ts'
import { createGameStats, type MeasuredRun } from './stats/index.ts'

const STEP_MS = STATS_TIERS[0].stepSeconds * 1000

export interface Observation {
  port: Pick<AgentGames, 'readPlayers' | 'readStats' | 'followStats' | 'readUsage'>
  presence(serverId: string): Presence
  /** It has written something, or its state has changed. */
  wake(serverId: string): void
  /** Measures all games that run, and asks them who plays. */
  sample(): Promise<void>
  forget(serverId: string): void
  /** From now on it samples by itself. */
  start(): void
  stop(): void
}

export interface ObservationDeps {
  games: ReadonlyMap<string, Pick<Game, 'read' | 'launch' | 'run'>>
  gameFolder(serverId: string): string
  consoleFolder(serverId: string): string
  server(serverId: string): Pick<ServerFiles, 'usage'>
  addFact(fact: NewFact): Promise<void>
  now(): number
  onUnexpected(error: unknown, serverId: string): void
}

export function createObservation(deps: ObservationDeps): Observation {
  const { games, gameFolder, consoleFolder, now, onUnexpected } = deps
  const players = createGamePlayers({
    isRunning: (serverId) => games.get(serverId)?.read().power.state === 'running',
    launch: (serverId) => games.get(serverId)?.launch() ?? null,
    consoleFolder,
    recordFile: (serverId) => join(gameFolder(serverId), 'players.json'),
    addFact: deps.addFact,
    now,
    onUnexpected,
  })
  const stats = createGameStats({
    file: (serverId) => join(gameFolder(serverId), 'stats.bin'),
    diskBytes: (serverId) => deps.server(serverId).usage.knownBytes(),
    players: (serverId) => players.presence(serverId).online,
    now,
    onUnexpected,
  })
  let timer: NodeJS.Timeout | undefined
  let isStopped = false

  function measuredRuns(): MeasuredRun[] {
    return [...games].flatMap(([serverId, game]) => {
      const run = game.run()
      return run ? [{ serverId, runId: run.runId, usage: run.usage }] : []
    })
  }

  async function sample(): Promise<void> {
    const runs = measuredRuns()
    players.sample(runs.map(({ serverId }) => serverId))
    await stats.sample(runs)
  }

  /** At the end of each step, and never two at once. */
  function schedule(): void {
    if (isStopped) return
    const leftMs = STEP_MS - (Date.now() % STEP_MS)
    // A timer that fires a little early must not measure the same step twice.
    const delayMs = leftMs < STEP_MS / 2 ? leftMs + STEP_MS : leftMs
    const failed = (error: unknown) => onUnexpected(error, 'every server')
    timer = setTimeout(() => void sample().catch(failed).finally(schedule), delayMs).unref()
  }

  return {
    port: {
      readPlayers: ({ serverId }) => players.read(serverId),
      readStats: ({ serverId, since, stepSeconds }) => stats.read(serverId, since, stepSeconds),
      followStats: stats.follow,
      async readUsage({ limit }) {
        const all = [...stats.latest()]
        return { games: all.slice(0, limit), running: all.length }
      },
    },
    presence: players.presence,
    wake: players.wake,
    sample,
    forget(serverId) {
      players.forget(serverId)
      stats.forget(serverId)
    },
    start: schedule,
    stop() {
      isStopped = true
      clearTimeout(timer)
      players.stop()
      stats.stop()
    },
  }
}

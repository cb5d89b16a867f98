// What each game that runs uses, for Prometheus. Only ids are told, only of games that run, and only of so many.
import { Counter, Gauge, Registry } from 'prom-client'
import type { AgentGames, GameUsage } from '../../contract/agent/agent-games.ts'
import { METRICS_GAMES_MAX } from '../../contract/fixed-limits.ts'

interface GameMetric {
  name: string
  help: string
  kind: 'gauge' | 'counter'
  field: Exclude<keyof GameUsage, 'serverId'>
}

const METRICS: readonly GameMetric[] = [
  {
    name: 'gamekeeper_game_cpu_seconds_total',
    help: 'Processor time since the game was started',
    kind: 'counter',
    field: 'cpuSeconds',
  },
  { name: 'gamekeeper_game_memory_bytes', help: 'Memory of the game', kind: 'gauge', field: 'memoryBytes' },
  { name: 'gamekeeper_game_disk_bytes', help: 'Files and trash of its server', kind: 'gauge', field: 'diskBytes' },
  {
    name: 'gamekeeper_game_network_received_bytes_total',
    help: 'Received since the game was started, where it has a network of its own',
    kind: 'counter',
    field: 'networkReceivedBytes',
  },
  {
    name: 'gamekeeper_game_network_sent_bytes_total',
    help: 'Sent since the game was started, where it has a network of its own',
    kind: 'counter',
    field: 'networkSentBytes',
  },
  { name: 'gamekeeper_game_players', help: 'Players online, where that is known', kind: 'gauge', field: 'players' },
]

/** In Prometheus' text format. */
export function createGameMetrics(games: Pick<AgentGames, 'readUsage'>): () => Promise<string> {
  const registry = new Registry()
  const registers = [registry]
  const running = new Gauge({ name: 'gamekeeper_games_running', help: 'Games that run', registers })
  const metrics = METRICS.map(({ name, help, kind, field }) => {
    const options = { name, help, labelNames: ['server'] as const, registers }
    return { field, metric: kind === 'gauge' ? new Gauge(options) : new Counter(options) }
  })
  return async () => {
    const usage = await games.readUsage({ limit: METRICS_GAMES_MAX })
    running.set(usage.running)
    for (const { field, metric } of metrics) {
      metric.reset()
      for (const game of usage.games) {
        const value = game[field]
        if (value !== null) metric.inc({ server: game.serverId }, value)
      }
    }
    return await registry.metrics()
  }
}

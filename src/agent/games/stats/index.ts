// Measures every game that runs, by one timer for all of them, and keeps what it has measured.
import type { GameUsage } from '../../../contract/agent/agent-games.ts'
import { STATS_TIERS } from '../../../contract/fixed-limits.ts'
import type { Stats, StatsPoint } from '../../../contract/games/stats.ts'
import { iso } from '../../../kit/time.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { createWatchers } from '../../../kit/waiting/watchers.ts'
import type { RunUsage } from '../run-usage.ts'
import { shown } from './stats-point.ts'
import { createStatsSeries, type StatsSeries } from './stats-series.ts'

const STEP_MS = STATS_TIERS[0].stepSeconds * 1000
/** How far back the finest steps go, and what is shown by default. */
const KEPT_MS = STEP_MS * STATS_TIERS[0].points

/** A run that is measured. */
export interface MeasuredRun {
  serverId: string
  /** Counters begin anew with each. */
  runId: string
  usage(): Promise<RunUsage>
}

export interface GameStats {
  /** Measures once: every ten seconds, at the end of a step. */
  sample(runs: readonly MeasuredRun[]): Promise<void>
  read(serverId: string, since: number | null, stepSeconds: number | null): Promise<Stats>
  follow(
    request: { serverId: string; after: number | null; waitMs: number },
    signal?: AbortSignal,
  ): Promise<{ points: StatsPoint[]; position: number }>
  latest(): Iterable<GameUsage>
  forget(serverId: string): void
  /** Writes what was not written yet. */
  stop(): void
}

export interface GameStatsDeps {
  file(serverId: string): string
  /** As last measured, without a look at the disk; null where it never was. */
  diskBytes(serverId: string): number | null
  players(serverId: string): number | null
  now(): number
  onUnexpected(error: unknown, serverId: string): void
}

interface Measured {
  runId: string
  at: number
  usage: RunUsage
  shownUsage: GameUsage
}

export function createGameStats(deps: GameStatsDeps): GameStats {
  const { now } = deps
  /** Of games that run. */
  const series = new Map<string, StatsSeries>()
  const measured = new Map<string, Measured>()
  const added = createWatchers()
  let isStopped = false

  const openSeries = (serverId: string) =>
    createStatsSeries(deps.file(serverId), (error) => deps.onUnexpected(error, serverId))
  /** Of one that does not run there is nothing in memory. */
  const seriesOf = (serverId: string) => series.get(serverId) ?? openSeries(serverId)

  async function measure({ serverId, runId, usage: readUsage }: MeasuredRun, stepAt: number): Promise<void> {
    const usage = await readUsage()
    if (isStopped) return
    const at = now()
    const [diskBytes, players] = [deps.diskBytes(serverId), deps.players(serverId)]
    const before = measured.get(serverId)
    measured.set(serverId, { runId, at, usage, shownUsage: { serverId, ...usage, diskBytes, players } })
    const known = before?.runId === runId ? before : undefined
    const perSecond = (field: keyof RunUsage) => rateOf(known?.usage[field], usage[field], at - (known?.at ?? at))
    const cores = perSecond('cpuSeconds')
    const own = seriesOf(serverId)
    series.set(serverId, own)
    own.add({
      at: stepAt,
      samples: 1,
      cpuPercent: cores === null ? null : cores * 100,
      memoryBytes: usage.memoryBytes,
      diskBytes,
      networkReceivedBytesPerSecond: perSecond('networkReceivedBytes'),
      networkSentBytesPerSecond: perSecond('networkSentBytes'),
      players,
    })
    added.tell(serverId)
  }

  function end(serverId: string): void {
    series.get(serverId)?.flush()
    series.delete(serverId)
    measured.delete(serverId)
  }

  return {
    async sample(runs) {
      const stepAt = Math.round(now() / STEP_MS) * STEP_MS - STEP_MS
      const running = new Set(runs.map(({ serverId }) => serverId))
      for (const serverId of [...series.keys()]) if (!running.has(serverId)) end(serverId)
      const turns = createTurns('stats')
      for (const run of runs) {
        if (turns.due()) await turns.take()
        if (isStopped) return
        // One that cannot be measured keeps no other from it.
        await measure(run, stepAt).catch((error: unknown) => deps.onUnexpected(error, run.serverId))
      }
    },

    async read(serverId, since, stepSeconds) {
      // Asked once: a moment later, the hour that ends now would begin before the finest steps do.
      const at = now()
      const from = since ?? at - KEPT_MS
      const asked = stepSeconds === null ? null : stepSeconds * 1000
      const { stepMs, points } = await seriesOf(serverId).read(from, asked, at)
      return { since: iso(from), step: stepMs / 1000, data: points.map(shown) }
    },

    async follow({ serverId, after, waitMs }, signal) {
      if (after === null) return { points: [], position: now() - STEP_MS }
      using waiting = added.watch(serverId)
      const read = () => seriesOf(serverId).after(Math.max(after, now() - KEPT_MS))
      let points = await read()
      if (points.length === 0 && (await waiting.wait(waitMs, signal))) points = await read()
      return { points: points.map(shown), position: points.at(-1)?.at ?? after }
    },

    latest: () => [...measured.values()].map(({ shownUsage }) => shownUsage),
    forget: (serverId) => {
      series.delete(serverId)
      measured.delete(serverId)
      added.tell(serverId)
    },
    stop() {
      isStopped = true
      for (const serverId of [...series.keys()]) end(serverId)
    },
  }
}

/** A counter that has gone back, as the sum of processes does when one of them ends, has not moved. */
function rateOf(before: number | null | undefined, after: number | null, ms: number): number | null {
  if (before === undefined || before === null || after === null || ms <= 0) return null
  return Math.max(0, (after - before) / (ms / 1000))
}

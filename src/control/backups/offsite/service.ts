// The off-site store as callers and monitoring see it.
import type { Logger } from 'pino'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Agent } from '../../../contract/agent.ts'
import type { Offsite } from '../../../contract/backups/offsite.ts'
import { fail } from '../../../contract/errors.ts'
import { iso, isoOrNull } from '../../../kit/time.ts'
import type { Activity } from '../../activity/service.ts'
import type { Changes } from '../../db/row-changes.ts'
import type { Db } from '../../db/tables.ts'
import { transact } from '../../db/transact.ts'
import { type Actor, requireAllServers } from '../../http/actor.ts'
import type { HealthCheck } from '../../http/health.ts'
import { type FirstOffsiteState, firstOffsiteState } from '../present.ts'
import { createMirroring, type Mirroring, type MirroringState } from './mirroring.ts'
import { forgetDeleted, sumUnsent, takeUpPlace, type Unsent } from './offsite-store.ts'
import { createOutcomes } from './outcomes.ts'

const DAY_MS = 24 * 3600_000
const DELETED_KEPT_MS = 400 * DAY_MS

/** Where the mirror is, as far as control has to know. */
export interface OffsitePlace {
  /** Without keys. */
  place: string
  isAppendOnly: boolean
}

export interface OffsiteService {
  /** Of a backup that has completed just now. */
  firstState: FirstOffsiteState
  /** The store has changed. */
  wake(): void
  read(actor: Actor): Promise<Offsite>
  prune(actor: Actor, bytes: number): Promise<Offsite>
  claim(actor: Actor): Promise<Offsite>
  /** Before anybody is told the state of a backup. */
  takeUp(): Promise<void>
  start(): void
  stop(): Promise<void>
  /** None where there is no mirror. */
  health: HealthCheck[]
  measure(registry: Registry): void
}

export function createOffsite(deps: {
  db: Db
  agent: Pick<Agent, 'tasks' | 'offsite'>
  activity: Activity
  changes: Changes
  clock: { now(): number }
  log: Logger
  offsite: OffsitePlace | null
  backOffMs?: (failures: number) => number
}): OffsiteService {
  const { db, agent, activity, clock, offsite } = deps
  const mirroring = offsite && createMirroring({ ...deps, outcomes: createOutcomes(deps) })

  async function describe(): Promise<Offsite> {
    if (!offsite || !mirroring) return NONE
    return present(offsite, mirroring.state(), await sumUnsent(db), clock.now())
  }

  function requireMirroring(actor: Actor): Mirroring {
    requireAllServers(actor)
    if (!mirroring) throw fail('offsite_not_configured', 'No off-site store is configured: set GAMEKEEPER_OFFSITE.')
    return mirroring
  }

  /** Anybody may ask: where it is and what it says is for those who may. */
  async function warn(): Promise<string | undefined> {
    const { oldestAt } = await sumUnsent(db)
    const why = '"gamekeeper offsite status" says why'
    if (oldestAt !== null && oldestAt < clock.now() - DAY_MS)
      return `a backup has not been sent to the off-site store for more than a day; ${why}`
    return isHeld(mirroring?.state().surplus ?? null)
      ? `what should be removed from the off-site store waits for a confirmation; ${why}`
      : undefined
  }

  return {
    firstState: firstOffsiteState(offsite !== null),
    wake: () => mirroring?.wake(),

    async read(actor) {
      requireAllServers(actor)
      return await describe()
    },

    async prune(actor, bytes) {
      const running = requireMirroring(actor)
      const answer = await describe()
      await transact(db, actor, async (trx) => {
        await activity.record(trx, actor, 'offsite.prune_confirmed', null, { bytes })
        return answer
      })
      running.confirmRemoval(bytes)
      return answer
    },

    async claim(actor) {
      const running = requireMirroring(actor)
      await agent.offsite.claim()
      const answer = await describe()
      await transact(db, actor, async (trx) => {
        await activity.record(trx, actor, 'offsite.claimed', null, { place: offsite?.place })
        return answer
      })
      running.hasten()
      return answer
    },

    takeUp: () =>
      transact(db, {}, async (trx) => {
        await takeUpPlace(trx, offsite?.place ?? null)
        await forgetDeleted(trx, clock.now() - DELETED_KEPT_MS)
      }),
    start: () => mirroring?.start(),
    stop: async () => mirroring?.stop(),

    health: mirroring ? [{ name: 'offsite', check: async () => undefined, warn }] : [],
    measure(registry) {
      if (mirroring) measureOffsite(registry, mirroring.state, () => sumUnsent(db), clock.now)
    },
  }
}

const NONE: Offsite = {
  place: null,
  isAppendOnly: false,
  isReachable: null,
  activity: 'off',
  problem: null,
  progress: null,
  lastRun: null,
  nextRunAt: null,
  pendingBackups: 0,
  pendingBytes: 0,
  oldestPendingAt: null,
  mirror: null,
  surplus: null,
}

const isHeld = (surplus: MirroringState['surplus']) => surplus !== null && surplus.reason !== 'append_only'

function present(offsite: OffsitePlace, state: MirroringState, unsent: Unsent, now: number): Offsite {
  const { progress, lastRun, mirror, surplus, nextRunAt } = state
  const activity = progress ? 'sending' : nextRunAt === null ? 'idle' : 'waiting'
  return {
    place: offsite.place,
    isAppendOnly: offsite.isAppendOnly,
    isReachable: lastRun === null ? null : lastRun.error?.code !== 'offsite_unreachable',
    activity,
    problem: problemOf(state, unsent, now),
    progress,
    lastRun: lastRun && { ...lastRun, startedAt: iso(lastRun.startedAt), endedAt: iso(lastRun.endedAt) },
    nextRunAt: isoOrNull(nextRunAt),
    pendingBackups: unsent.backups,
    pendingBytes: unsent.bytes,
    oldestPendingAt: isoOrNull(unsent.oldestAt),
    mirror,
    surplus,
  }
}

const HELD_BACK = {
  shrinks:
    'Less than half of the off-site store would be left if what the local store no longer has were removed, so nothing is. ' +
    'If that is right, confirm it with "gamekeeper offsite prune --confirm".',
  store_incomplete:
    'The local store lacks backups or packs that nobody has deleted, so nothing is removed from the off-site store. Find ' +
    'out what has become of them; if they are gone for good, confirm it with "gamekeeper offsite prune --confirm".',
} as const

/** The worst comes first. */
function problemOf(state: MirroringState, { oldestAt }: Unsent, now: number): string | null {
  const { lastRun, surplus, damaged, warnings } = state
  if (lastRun?.error) return lastRun.error.detail
  const [first] = damaged
  if (first)
    return `Blobs that are damaged in the off-site store could not be replaced: ${damaged.length}. ${first.blob}: ${first.why}`
  if (surplus && surplus.reason !== 'append_only') return HELD_BACK[surplus.reason]
  if (oldestAt !== null && oldestAt < now - DAY_MS)
    return 'The oldest backup that is still to be sent completed more than a day ago.'
  return warnings.length > 0 ? warnings.join(' ') : null
}

function measureOffsite(
  registry: Registry,
  state: () => MirroringState,
  unsent: () => Promise<Unsent>,
  now: () => number,
): void {
  const registers = [registry]
  const gauge = (name: string, help: string, read: () => Promise<number> | number) =>
    new Gauge({
      name: `gamekeeper_offsite_${name}`,
      help,
      registers,
      async collect() {
        this.set(await read())
      },
    })
  gauge('unsent_backups', 'Backups that are not in the off-site store yet', async () => (await unsent()).backups)
  gauge('unsent_bytes', 'What those backups have added to the local store', async () => (await unsent()).bytes)
  gauge('oldest_unsent_seconds', 'How long ago the oldest of those backups completed', async () => {
    const { oldestAt } = await unsent()
    return oldestAt === null ? 0 : Math.max(0, now() - oldestAt) / 1000
  })
  gauge('bytes', 'What the off-site store holds', () => state().mirror?.bytes ?? 0)
  gauge('surplus_bytes', 'What it holds and the local store does not', () => state().surplus?.bytes ?? 0)
  const counter = (name: string, help: string, read: () => number) =>
    new Counter({
      name: `gamekeeper_offsite_${name}`,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  counter('sent_bytes_total', 'Sent to the off-site store since the start', () => state().totals.sentBytes)
  counter('runs_total', 'Runs that succeeded since the start', () => state().totals.succeeded)
  counter('failed_runs_total', 'Runs that failed since the start', () => state().totals.failed)
}

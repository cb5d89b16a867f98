// Runs the mirror after each change of the store, again after a failure, and notes which backups it has.
import type { Logger } from 'pino'
import type { MirrorReport } from '../../../contract/agent/agent-offsite.ts'
import type { Agent, TaskProgress } from '../../../contract/agent.ts'
import type { WorkError } from '../../../contract/jobs.ts'
import { toFailure } from '../../../http/problem.ts'
import { newId } from '../../../kit/ids.ts'
import type { Db } from '../../db/tables.ts'
import { runAgentTask } from '../../jobs/agent-task.ts'
import { deletedAmong } from './offsite-store.ts'
import type { Outcomes } from './outcomes.ts'
import { createWokenLoop } from './woken-loop.ts'

const SETTLE_MS = 200
const BACK_OFF_MS = { first: 10_000, longest: 30 * 60_000 }
/** What is in the mirror is looked at this often, though nothing has failed. */
const THOROUGH_MS = 24 * 3600_000

export interface MirrorRunSummary {
  startedAt: number
  endedAt: number
  sentBlobs: number
  sentBytes: number
  removedBlobs: number
  removedBytes: number
  error: WorkError | null
}

/** Since the start of the service. */
export interface MirroringState {
  /** Of the run under way; null while there is none. */
  progress: TaskProgress | null
  lastRun: MirrorRunSummary | null
  /** Of the last run that succeeded. */
  mirror: MirrorReport['mirror'] | null
  surplus: MirrorReport['surplus']
  damaged: MirrorReport['damaged']
  warnings: MirrorReport['warnings']
  nextRunAt: number | null
  totals: { sentBytes: number; succeeded: number; failed: number }
}

export interface Mirroring {
  wake(): void
  /** Runs at once, and lets up to this much be removed though a safeguard stands against it. */
  confirmRemoval(bytes: number): void
  hasten(): void
  start(): void
  stop(): Promise<void>
  state(): MirroringState
}

/** 10 s, 20 s, 40 s … up to half an hour, and up to half of it sooner: not everybody comes back at the same instant. */
export const mirrorBackOffMs = (failures: number, random = Math.random()): number =>
  Math.min(BACK_OFF_MS.first * 2 ** Math.min(failures - 1, 20), BACK_OFF_MS.longest) * (1 - random / 2)

const NO_PROGRESS: TaskProgress = { filesDone: 0, filesTotal: null, bytesDone: 0, bytesTotal: null }

export function createMirroring(deps: {
  db: Db
  agent: Pick<Agent, 'tasks'>
  outcomes: Outcomes
  clock: { now(): number }
  log: Logger
  backOffMs?: (failures: number) => number
}): Mirroring {
  const { db, agent, outcomes, clock, log, backOffMs = mirrorBackOffMs } = deps
  const state: Omit<MirroringState, 'nextRunAt'> = {
    progress: null,
    lastRun: null,
    mirror: null,
    surplus: null,
    damaged: [],
    warnings: [],
    totals: { sentBytes: 0, succeeded: 0, failed: 0 },
  }
  let confirmedBytes: number | null = null
  /** Each is logged once. */
  const logged = new Set<string>()
  /** When everything that the mirror holds was told; null: it has to be told again, since something has failed. */
  let toldAllAt: number | null = null

  async function runOnce(summary: MirrorRunSummary, deletedBackups: string[], signal: AbortSignal) {
    const [before, now] = [toldAllAt, clock.now()]
    const isThorough = before === null || before < now - THOROUGH_MS
    toldAllAt = null
    const report = (progress: TaskProgress) => {
      state.progress = progress
    }
    const task = { jobId: newId('job'), serverId: '', signal, report }
    const work = { kind: 'backups.mirror' as const, isThorough, deletedBackups, confirmedBytes }
    const done = await runAgentTask(agent.tasks, task, work)
    await outcomes.noteReport(done)
    toldAllAt = isThorough ? now : before
    summary.sentBlobs += done.sent.blobs
    summary.sentBytes += done.sent.bytes
    summary.removedBlobs += done.removed.blobs
    summary.removedBytes += done.removed.bytes
    state.totals.sentBytes += done.sent.bytes
    return done
  }

  async function runAll(summary: MirrorRunSummary, signal: AbortSignal): Promise<void> {
    const confirmed = confirmedBytes
    let done = await runOnce(summary, [], signal)
    // What is gone from the store was deleted, or has been lost: that is for the database to say.
    const deleted = await deletedAmong(
      db,
      done.unexplained.map(({ backupId }) => backupId),
    )
    if (deleted.length > 0) done = await runOnce(summary, deleted, signal)
    state.mirror = done.mirror
    state.surplus = done.surplus
    state.damaged = done.damaged
    state.warnings = done.warnings
    for (const warning of done.warnings.filter((each) => !logged.has(each))) {
      log.warn(`off-site store: ${warning}`)
      logged.add(warning)
    }
    // It was given once, for what was to be seen then.
    if (confirmedBytes === confirmed) confirmedBytes = null
  }

  async function run(signal: AbortSignal): Promise<void> {
    const startedAt = clock.now()
    const sums = { sentBlobs: 0, sentBytes: 0, removedBlobs: 0, removedBytes: 0 }
    const summary: MirrorRunSummary = { startedAt, endedAt: startedAt, ...sums, error: null }
    state.progress = NO_PROGRESS
    try {
      await runAll(summary, signal)
      state.totals.succeeded++
    } catch (error) {
      if (signal.aborted) return
      await fail(error, summary)
      throw error
    } finally {
      state.progress = null
      if (!signal.aborted) state.lastRun = { ...summary, endedAt: clock.now() }
    }
  }

  async function fail(error: unknown, summary: MirrorRunSummary): Promise<void> {
    const { code, detail } = toFailure(error)
    const isNews = state.lastRun?.error?.detail !== detail
    summary.error = { code, detail }
    state.totals.failed++
    if (code === 'internal') log.error({ err: error }, 'backups could not be sent to the off-site store')
    else if (isNews) log.warn({ code, detail }, 'backups could not be sent to the off-site store')
    await outcomes.noteFailure(summary.error).catch((failure: unknown) => {
      log.error({ err: failure }, 'that backups could not be sent could not be written down')
    })
  }

  const loop = createWokenLoop(run, { settleMs: SETTLE_MS, backOffMs, now: clock.now })
  return {
    wake: loop.wake,
    hasten: loop.hasten,
    confirmRemoval(bytes) {
      confirmedBytes = bytes
      loop.hasten()
    },
    start() {
      loop.start()
      loop.wake()
    },
    stop: loop.stop,
    state: () => ({ ...state, nextRunAt: loop.nextAt }),
  }
}

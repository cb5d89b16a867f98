// Proof that backups are intact: one on request, and part of the whole store each day. Damage is recorded with every
// backup it affects, and stays visible until a verification finds it repaired.

import type { DamageReport } from '../../contract/agent/agent-backups.ts'
import type { Agent } from '../../contract/agent.ts'
import { isFailure } from '../../contract/errors.ts'
import type { Job } from '../../contract/jobs.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer, lockServers } from '../db/lock-server.ts'
import type { Db, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import { type Actor, SYSTEM } from '../http/actor.ts'
import { runAgentTask } from '../jobs/agent-task.ts'
import { backOffMs, type JobContext, type Jobs } from '../jobs/runner.ts'
import { presentJob } from '../jobs/store.ts'
import { lockReadyServer } from '../servers/service.ts'
import { createDamageNotes, type NoteDamage, touchedBy } from './damage-notes.ts'
import type { OffsiteService } from './offsite/service.ts'
import { noSuchBackup, requireCompleted, requireSent } from './present.ts'
import { NO_SERVER } from './removal.ts'
import * as store from './store.ts'

export const VERIFY = 'verify'
const SCRUB = 'backups.scrub'
const SCRUBBED_AT = 'backups.scrubbedAt'
const DAY_MS = 24 * 3600_000
/** Everything is read once in this many days. */
const SCRUB_DAYS = 30

interface VerifyInput {
  backupId: string
  isOffsite?: boolean
}

export interface Verifying {
  /** `isOffsite`: what the off-site store has of it as well. */
  start(
    actor: Actor,
    serverId: string,
    backupId: string,
    options: { isOffsite: boolean },
  ): Promise<Job & { serverId: string }>
  /** The daily share of the scrub, and another look at what is damaged; at most once a day however often it is called. */
  upkeep(): Promise<void>
  /** In a transaction that has locked `serversOf` the damage. */
  noteDamage: NoteDamage
}

export function createVerifying(deps: {
  db: Db
  agent: Pick<Agent, 'tasks'>
  activity: Activity
  jobs: Jobs
  clock: { now(): number }
  onDamage: (count: number) => void
  offsite: Pick<OffsiteService, 'wake'>
}): Verifying {
  const { db, agent, activity, jobs, clock, offsite } = deps
  const noteDamage = createDamageNotes(deps)

  async function verify(job: JobContext<VerifyInput>): Promise<void> {
    const { backupId, isOffsite = false } = job.input
    const task = { ...job, jobId: `${job.jobId}.${job.attempt}` }
    const report = await runAgentTask(agent.tasks, task, { kind: 'backups.verify', backupId, isOffsite })
    await transact(db, {}, async (trx) => {
      await lockServers(trx, [job.serverId, ...serversOf(report.damage)])
      const row = await store.findRow(trx, backupId)
      await noteDamage(trx, job.actor, report.damage)
      if (row && !touchedBy(report.damage.filter(({ isOffsite: isCopy }) => !isCopy)).has(backupId)) {
        await store.updateBackup(trx, backupId, { verified_at: clock.now(), damage: null })
        const properties = { backupId, name: row.name, bytesChecked: report.bytesChecked }
        await activity.record(trx, job.actor, 'backup.verified', job.serverId, properties)
      }
      // It is replaced there by what the disk has.
      if (report.damage.some(({ isOffsite: isCopy }) => isCopy)) onCommit(trx, offsite.wake)
      await job.complete(trx, report)
    })
  }

  jobs.register<VerifyInput>(VERIFY, {
    cancellable: true,
    atOnce: 1,
    retryAfterMs: (error, attempt) =>
      isFailure(error, 'agent_unreachable') && attempt < 5 ? backOffMs(attempt) : null,
    run: verify,
    async onEnd(trx, { jobId, serverId, actor }, end) {
      if (end.status === 'cancelled') return
      await activity.record(trx, actor, 'job.failed', serverId, { jobId, kind: VERIFY, error: end.error })
    },
  })

  jobs.register<{ share: number }>(SCRUB, {
    cancellable: false,
    atOnce: 1,
    retryAfterMs: (_error, attempt) => (attempt < 3 ? backOffMs(attempt) : null),
    async run(job) {
      const task = { ...job, jobId: `${job.jobId}.${job.attempt}` }
      const report = await runAgentTask(agent.tasks, task, { kind: SCRUB, share: job.input.share })
      await transact(db, {}, async (trx) => {
        await lockServers(trx, serversOf(report.damage))
        await noteDamage(trx, SYSTEM, report.damage)
        // A scrub is nobody's work, so what it has healed is told here, and not as what a server has met.
        for (const blob of report.healed) await activity.record(trx, SYSTEM, 'backup.healed', null, { blob })
        await job.complete(trx, report)
      })
    },
  })

  async function isScrubDue(trx: Trx): Promise<boolean> {
    const now = clock.now()
    const last = await trx.selectFrom('instance').select('value').where('key', '=', SCRUBBED_AT).executeTakeFirst()
    if (last && Number(last.value) > now - DAY_MS) return false
    const value = String(now)
    await trx
      .insertInto('instance')
      .values({ key: SCRUBBED_AT, value })
      .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
      .execute()
    return true
  }

  return {
    noteDamage,

    start: (actor, serverId, backupId, { isOffsite }) =>
      transact(db, actor, async (trx) => {
        await lockReadyServer(trx, actor, serverId)
        const row = await store.findBackup(trx, serverId, backupId)
        if (!row) throw noSuchBackup()
        requireCompleted(row)
        if (isOffsite) requireSent(row)
        await jobs.requireRoom(trx, serverId)
        const input = { backupId, ...(isOffsite ? { isOffsite } : {}) }
        const job = await jobs.enqueue(trx, actor, { kind: VERIFY, serverId, input })
        await activity.record(trx, actor, 'job.started', serverId, { jobId: job.id, kind: VERIFY, backupId })
        return { ...presentJob(job), serverId }
      }),

    upkeep: () =>
      transact(db, {}, async (trx) => {
        if (!(await isScrubDue(trx))) return
        await jobs.enqueue(trx, SYSTEM, { kind: SCRUB, serverId: NO_SERVER, input: { share: 1 / SCRUB_DAYS } })
        for (const row of await store.damaged(trx)) {
          if ((await lockServer(trx, row.server_id))?.status !== 'ready') continue
          const input = { backupId: row.id }
          await jobs.enqueue(trx, SYSTEM, { kind: VERIFY, serverId: row.server_id, input })
        }
      }),
  }
}

/** Whose backups it touches. */
const serversOf = (damage: readonly DamageReport[]) =>
  damage.flatMap(({ touches }) => touches.map(({ serverId }) => serverId))

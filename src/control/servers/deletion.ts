// Deletes a server in two steps. First it is set aside: its work has ended, its names are out of DNS, its folders are
// where nothing reaches them, and everything it had is kept. After some days it is purged, and that cannot be undone.
// Each step is an idempotent job, so a crash between any two of its statements only delays it.
import type { Logger } from 'pino'
import type { Agent } from '../../contract/agent.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import type { Job } from '../../contract/jobs.ts'
import type { DeletionPlan, Freed } from '../../contract/servers.ts'
import { iso } from '../../kit/time.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Db, ServerRow, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import { type Actor, SYSTEM } from '../http/actor.ts'
import type { Streams } from '../http/streams/open-streams.ts'
import { backOffMs, type JobContext, type Jobs } from '../jobs/runner.ts'
import { presentJob } from '../jobs/store.ts'
import { findServer, lockVisibleServer, requireReady, requireServer, requireStopped } from './access.ts'
import type { Quotas } from './disk-quota.ts'
import type { ServerPart } from './server-part.ts'
import * as store from './store.ts'

export interface Deletion {
  /** What deleting the server would free. */
  plan(actor: Actor, serverId: string): Promise<DeletionPlan>
  start(actor: Actor, serverId: string, request: { name: string; purge?: boolean }): Promise<Job>
  undelete(actor: Actor, serverId: string): Promise<Job>
  /** Purges deleted servers whose time to be brought back is over. */
  purgeExpired(): Promise<void>
}

export interface DeletionDeps {
  db: Db
  agent: Pick<Agent, 'servers' | 'files'>
  activity: Activity
  jobs: Jobs
  /** What the agent has told of the server's files, and has no entry yet. */
  facts: { recordAllOf(serverId: string): Promise<void> }
  streams: Streams
  quotas: Quotas
  clock: { now(): number }
  log: Logger
  /** How long a deleted server can be brought back; 0: not at all. */
  keepMs: number
  /** Asked at the time of use, since parts are made after the servers that they belong to. */
  parts: () => readonly ServerPart[]
}

const DELETE = 'server.delete'
const UNDELETE = 'server.undelete'
const PURGE = 'server.purge'
const STOP_WITHIN_MS = 60_000

export function createDeletion(deps: DeletionDeps): Deletion {
  const { db, agent, activity, jobs, facts, streams, quotas, clock, log, keepMs, parts } = deps

  async function measure(serverId: string): Promise<Freed> {
    const { usedBytes, trashBytes } = await agent.files.usage({ serverId })
    const frees: Freed = {
      files: { sizeBytes: usedBytes - trashBytes },
      trash: { sizeBytes: trashBytes },
      backups: { count: 0, storedBytes: 0 },
      subdomains: [],
    }
    for (const part of parts()) Object.assign(frees, await part.frees?.(serverId))
    return frees
  }

  /** Measured once, and written down before the folders are put aside: after that they cannot be measured any more. */
  async function noteFreed(serverId: string): Promise<void> {
    if ((await findServer(db, serverId))?.frees !== null) return
    const frees = JSON.stringify(await measure(serverId))
    await transact(db, {}, async (trx) => {
      if ((await lockServer(trx, serverId))?.frees === null) await store.updateServer(trx, serverId, { frees })
    })
  }

  async function putAside({ serverId, signal }: JobContext<unknown>): Promise<void> {
    await jobs.endAllOf(serverId, STOP_WITHIN_MS)
    for (const part of parts()) await part.withdraw?.(serverId, signal)
    await noteFreed(serverId)
    await agent.servers.hold({ serverId })
    // From here on its files do not change: what is told of them comes before the entry of the deletion.
    await facts.recordAllOf(serverId)
  }

  async function recordDeleted(trx: Trx, job: JobContext<unknown>, row: ServerRow, deletedAt: number, purgeAt: number) {
    const result = { deletedAt: iso(deletedAt), purgeAt: iso(purgeAt), frees: freedOf(row) }
    await activity.record(trx, job.actor, 'server.deleted', row.id, { name: row.name, ...result })
    return result
  }

  async function deleteServer(job: JobContext<{ isPurge: boolean }>): Promise<void> {
    await putAside(job)
    if (job.input.isPurge) return purge(job)
    await transact(db, {}, async (trx) => {
      const row = await lockServer(trx, job.serverId)
      if (!row) return
      const deletedAt = clock.now()
      const purgeAt = deletedAt + keepMs
      const change = { status: 'deleted', deleted_at: deletedAt, purge_at: purgeAt, updated_at: deletedAt } as const
      await store.updateServer(trx, row.id, change)
      await job.complete(trx, await recordDeleted(trx, job, row, deletedAt, purgeAt))
    })
  }

  /** From here on nothing can be had back. The entry is the last of the server. */
  async function purge(job: JobContext<unknown>): Promise<void> {
    const { serverId, signal } = job
    await jobs.endAllOf(serverId, STOP_WITHIN_MS)
    for (const part of parts()) await part.release?.(serverId, signal)
    await agent.servers.remove({ serverId })
    await facts.recordAllOf(serverId)
    await transact(db, {}, async (trx) => {
      const row = await lockServer(trx, serverId)
      if (!row) return
      if (row.deleted_at === null) await recordDeleted(trx, job, row, clock.now(), clock.now())
      for (const part of parts()) await part.remove?.(trx, serverId)
      await store.removeServerRow(trx, serverId)
      await activity.record(trx, job.actor, 'server.purged', serverId, { name: row.name, frees: freedOf(row) })
      await job.complete(trx, { frees: freedOf(row) })
      onCommit(trx, () => streams.endForServer(serverId))
    })
  }

  async function undeleteServer(job: JobContext<unknown>): Promise<void> {
    const { serverId, actor } = job
    await agent.servers.unhold({ serverId })
    await transact(db, {}, async (trx) => {
      const row = await lockServer(trx, serverId)
      if (!row) return
      const change = { status: 'ready', deleted_at: null, purge_at: null, frees: null } as const
      await store.updateServer(trx, serverId, { ...change, updated_at: clock.now() })
      for (const part of parts()) await part.revive?.(trx, actor, serverId)
      await activity.record(trx, actor, 'server.undeleted', serverId, { name: row.name })
      await job.complete(trx, { serverId })
    })
    await quotas.apply(serverId)
  }

  const steps = { [DELETE]: deleteServer, [UNDELETE]: undeleteServer, [PURGE]: purge }
  for (const [kind, run] of Object.entries(steps)) {
    jobs.register<never>(kind, {
      run,
      // Half-done is no place to stop: it is tried until it is done.
      retryAfterMs: (_error, attempt) => backOffMs(attempt),
      isNeverGivenUp: true,
      cancellable: false,
      atOnce: 4,
    })
  }

  /** The server is locked, and may be deleted or purged: says so, and has it done. */
  async function enqueue(trx: Trx, actor: Actor, row: ServerRow, isPurge: boolean): Promise<Job> {
    requireStopped(row)
    for (const part of parts()) await part.check?.(trx, row.id, { isPurge })
    const isHeld = row.status === 'deleted'
    await store.updateServer(trx, row.id, { status: isHeld ? 'purging' : 'deleting', updated_at: clock.now() })
    await activity.record(trx, actor, 'server.deletion_started', row.id, { name: row.name, purge: isPurge })
    const input = { isPurge }
    return presentJob(await jobs.enqueue(trx, actor, { kind: isHeld ? PURGE : DELETE, serverId: row.id, input }))
  }

  return {
    async plan(actor, serverId) {
      const row = await requireServer(db, actor, serverId)
      let lockedBackups = 0
      for (const part of parts()) lockedBackups += (await part.lockedCount?.(serverId)) ?? 0
      const frees = row.frees === null ? await measure(serverId) : freedOf(row)
      return { purgeAt: iso(row.purge_at ?? clock.now() + keepMs), lockedBackups, frees }
    },

    start: (actor, serverId, { name, purge: isPurge = false }) =>
      transact(db, actor, async (trx) => {
        const server = await lockVisibleServer(trx, actor, serverId)
        if (server.status !== 'deleted' || !isPurge) requireReady(server)
        if (name !== server.name) {
          const errors = [{ path: '/name', message: 'is not the name of the server' }]
          throw fail('invalid_request', { detail: 'The name in the body is not the name of the server.', errors })
        }
        return enqueue(trx, actor, server, isPurge || keepMs === 0)
      }),

    undelete: (actor, serverId) =>
      transact(db, actor, async (trx) => {
        const server = await lockVisibleServer(trx, actor, serverId)
        if (server.status === 'ready') throw fail('already_exists', 'The server is not deleted.')
        if (server.status !== 'deleted') requireReady(server)
        await store.updateServer(trx, serverId, { status: 'undeleting', updated_at: clock.now() })
        return presentJob(await jobs.enqueue(trx, actor, { kind: UNDELETE, serverId, input: {} }))
      }),

    async purgeExpired() {
      for (const serverId of await store.listExpiredIds(db, clock.now())) {
        await transact(db, {}, async (trx) => {
          const row = await lockServer(trx, serverId)
          if (row?.status === 'deleted' && (row.purge_at ?? 0) <= clock.now()) await enqueue(trx, SYSTEM, row, true)
        }).catch((error: unknown) => {
          if (!isFailure(error)) throw error
          log.warn({ err: error, serverId }, 'a deleted server could not be purged; it is tried again')
        })
      }
    },
  }
}

function freedOf({ frees }: ServerRow): Freed {
  if (frees === null) throw new Error('a server was put aside without having been measured')
  return JSON.parse(frees)
}

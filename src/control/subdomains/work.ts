// The job behind each subdomain: at most one is queued, however often it is requested.
import { fail, isFailure } from '../../contract/errors.ts'
import { isDnsFault } from '../../dns/provider.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Db, SubdomainRow, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, SYSTEM } from '../http/actor.ts'
import { backOffMs, type JobContext, type Jobs } from '../jobs/runner.ts'
import { reasonOf } from './provider-records.ts'
import * as store from './store.ts'
import type { Sync } from './sync.ts'

const SYNC = 'subdomain.sync'
const PROPAGATION_TRIES = 12
const MOST_PROPAGATION_WAIT_MS = 15_000
/** Somebody has to act first; the regular comparison tries again too. */
const ACT_FIRST_MS = 60_000

export interface Work {
  /** What is wanted has changed: takes the place of work on what was wanted before. Answers the job's id. */
  start(trx: Trx, actor: Actor, row: SubdomainRow): Promise<string>
  /** What is wanted is the same and must not be forgotten: work that waits is done at once. Answers the job's id. */
  ensure(trx: Trx, actor: Actor, row: SubdomainRow): Promise<string>
  /** `ensure`, then waits. Answers whether the provider has confirmed the subdomain since. */
  resume(row: SubdomainRow, waitMs: number): Promise<boolean>
}

export function createWork({ db, jobs, sync }: { db: Db; jobs: Jobs; sync: Sync }): Work {
  jobs.register<{ subdomainId: string }>(SYNC, {
    isNeverGivenUp: true,
    cancellable: false,
    atOnce: 8,
    async run({ input, actor, attempt, signal }: JobContext<{ subdomainId: string }>) {
      const result = await sync.run(actor, input.subdomainId, { signal })
      if (result.state === 'active' && !result.propagated && attempt < PROPAGATION_TRIES)
        throw fail('dns_unavailable', 'The name servers do not answer with it yet.')
    },
    retryAfterMs,
  })

  async function start(trx: Trx, actor: Actor, row: SubdomainRow): Promise<string> {
    const input = { subdomainId: row.id }
    const job = await jobs.enqueue(trx, actor, { kind: SYNC, serverId: row.server_id, input, replaces: row.job_id })
    await store.updateSubdomain(trx, row.id, { job_id: job.id })
    return job.id
  }

  const ensure = async (trx: Trx, actor: Actor, row: SubdomainRow) =>
    row.job_id !== null && (await jobs.hasten(trx, row.job_id)) ? row.job_id : start(trx, actor, row)

  return {
    start,
    ensure,
    async resume(row, waitMs) {
      const jobId = await transact(db, {}, async (trx) => {
        await lockServer(trx, row.server_id)
        const current = await store.findSubdomain(trx, row.id)
        return current && ensure(trx, SYSTEM, current)
      })
      if (!jobId || waitMs === 0) return false
      await jobs.whenEnded(jobId, waitMs)
      const now = await store.findSubdomain(db, row.id)
      const hasChanged = now?.updated_at !== row.updated_at || now.propagated_at !== row.propagated_at
      return now?.status === 'active' && now.reason === null && hasChanged
    },
  }
}

/** Never given up: what cannot be done now is done when the provider, or somebody, has made it possible. */
function retryAfterMs(error: unknown, attempt: number): number {
  const cause = isFailure(error, 'dns_unavailable') ? error.cause : undefined
  if (isDnsFault(cause)) return Math.max(cause.retryAfterMs ?? 0, cause.retryable ? backOffMs(attempt) : ACT_FIRST_MS)
  if (reasonOf(cause) === 'zone_unconfigured') return ACT_FIRST_MS
  const unanswered = isFailure(error, 'dns_unavailable') && cause === undefined
  return Math.min(backOffMs(attempt), unanswered ? MOST_PROPAGATION_WAIT_MS : ACT_FIRST_MS)
}

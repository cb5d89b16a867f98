// Jobs that were running when the process crashed. They may have caused the crash, and retrying them forever would
// block everything else. So crashes are counted, and a job is given up after some attempts.
import { fail } from '../../contract/errors.ts'
import { JOB_CRASHES_MAX } from '../../contract/fixed-limits.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Db, JobRow, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { factsOf, type JobHandler } from './handler.ts'
import * as store from './store.ts'

/** Work that is never given up is tried again after this long: until then the service is up for everybody else. */
const PUT_OFF_MS = 3600_000

export const crashed = () =>
  fail('job_crashed', `The service went down ${JOB_CRASHES_MAX} times while this ran. It is not run again.`)

/** Its next start is its last. Such jobs run one at a time, so that one of them is not blamed for another. */
export const isOnLastStart = ({ crashes }: JobRow) => crashes === JOB_CRASHES_MAX - 1

/** Nobody else uses the database: whatever is said to run was left by an earlier process, which did not stop by itself. */
export async function takeUpCrashed(
  { db, clock }: { db: Db; clock: { now(): number } },
  handlers: ReadonlyMap<string, JobHandler>,
): Promise<void> {
  for (const row of await store.runningJobs(db)) {
    await transact(db, {}, async (trx) => {
      await lockServer(trx, row.server_id)
      await takeUp(trx, row, handlers.get(row.kind), clock.now())
    })
  }
}

async function takeUp(trx: Trx, row: JobRow, handler: JobHandler | undefined, now: number): Promise<void> {
  const crashes = row.crashes + 1
  // One that settles what it has begun is run once more, with its signal aborted.
  if (crashes < JOB_CRASHES_MAX || !handler || handler.settlesCancel)
    return await store.requeueCrashed(trx, row.id, crashes)
  const { code, detail } = crashed()
  const error = { code, detail }
  if (handler.isNeverGivenUp) {
    const later = { dueAt: now + PUT_OFF_MS, error: { code, detail: PUT_OFF } }
    return await store.requeueCrashed(trx, row.id, crashes, later)
  }
  const end = row.cancel === 1 ? ({ status: 'cancelled' } as const) : ({ status: 'failed', error } as const)
  await handler.onEnd?.(trx, factsOf(row), end)
  await store.finishJob(trx, row.id, { ...end, at: now })
}

const PUT_OFF = `The service went down ${JOB_CRASHES_MAX} times or more while this ran. It is tried again an hour later.`

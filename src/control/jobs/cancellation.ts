// Ending jobs before they are done, and waiting for the end.
import { fail, isFailure } from '../../contract/errors.ts'
import { lockServer } from '../db/lock-server.ts'
import type { Changes } from '../db/row-changes.ts'
import type { Db, JobRow, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import { factsOf, type JobHandler } from './handler.ts'
import * as store from './store.ts'

export interface Cancellation {
  /** Ends a queued job at once and asks a running one to stop. Throws for one that has ended or cannot be cancelled. The server is locked. */
  cancel(trx: Trx, row: JobRow): Promise<void>
  /** Resolves when the job has ended, by this process, or the time is over. */
  whenEnded(jobId: string, waitMs: number): Promise<void>
  /** Cancels what can be cancelled of a server and waits for its end. Throws `server_busy` if it has not ended by then. */
  endAllOf(serverId: string, waitMs: number): Promise<void>
}

export function createCancellation(deps: {
  db: Db
  changes: Changes
  clock: { now(): number }
  handlers: ReadonlyMap<string, JobHandler>
  /** Asks a job that runs here to stop. */
  abort: (jobId: string) => void
  wake: (kind: string) => void
}): Cancellation {
  const { db, changes, clock, handlers, abort, wake } = deps

  async function cancel(trx: Trx, row: JobRow): Promise<void> {
    const handler = handlers.get(row.kind)
    if (row.status !== 'queued' && row.status !== 'running') throw finished()
    if (!handler?.cancellable) throw fail('server_busy', 'This work cannot be cancelled once it has been requested.')
    await handler.checkCancel?.(trx, factsOf(row))
    if (handler.settlesCancel && row.status === 'queued' && row.attempts > 0 && (await store.askQueued(trx, row.id)))
      return onCommit(trx, () => wake(row.kind))
    // The row may have been claimed, or have ended, since it was read: only the update itself can tell.
    if (await store.cancelQueued(trx, row.id, clock.now())) {
      await handler.onEnd?.(trx, factsOf(row), { status: 'cancelled' })
      changes.tellAfter(trx, row.id)
      return
    }
    if (!(await store.askToCancel(trx, row.id))) throw finished()
    onCommit(trx, () => abort(row.id))
  }

  async function whenEnded(jobId: string, waitMs: number): Promise<void> {
    using changed = changes.watch(jobId)
    const deadline = performance.now() + waitMs
    do {
      const { status } = (await store.jobStatus(db, jobId)) ?? { status: 'completed' }
      if (status !== 'queued' && status !== 'running') return
    } while (await changed.wait(Math.max(0, deadline - performance.now())))
  }

  return {
    cancel,
    whenEnded,
    async endAllOf(serverId, waitMs) {
      const active = async () =>
        (await store.activeJobsOf(db, serverId)).filter(({ kind }) => handlers.get(kind)?.cancellable)
      const rows = await active()
      for (const row of rows) {
        await transact(db, {}, async (trx) => {
          await lockServer(trx, serverId)
          await cancel(trx, row)
        }).catch((error: unknown) => {
          if (!isFailure(error, 'job_finished')) throw error
        })
      }
      for (const { id } of rows) await whenEnded(id, waitMs)
      if ((await active()).length > 0) throw fail('server_busy', 'Work on the server has not finished yet.')
    },
  }
}

const finished = () => fail('job_finished', 'The job has already finished.')

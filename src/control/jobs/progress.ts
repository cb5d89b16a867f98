// Saves a job's progress now and then: frequent reports must not each become a write.
import type { Logger } from 'pino'
import type { Progress } from '../../contract/jobs.ts'
import type { Changes } from '../db/row-changes.ts'
import type { Db } from '../db/tables.ts'
import * as store from './store.ts'

const PROGRESS_EVERY_MS = 500

export interface ProgressWriter {
  report(progress: Progress): void
  latest(): Progress | undefined
  /** The end of the job writes the rest. */
  stop(): void
  /** Resolves once nothing is being written any more. */
  written(): Promise<void>
}

export function createProgressWriter(
  deps: { db: Db; changes: Changes; clock: { now(): number }; log: Logger },
  jobId: string,
): ProgressWriter {
  const { db, changes, clock, log } = deps
  let latest: Progress | undefined
  let writtenAt = clock.now()
  let isStopped = false
  let writing: Promise<void> = Promise.resolve()

  function write(value: Progress): void {
    writtenAt = clock.now()
    writing = writing
      .then(async () => {
        if (isStopped) return
        await store.saveProgress(db, jobId, value)
        changes.tell(jobId)
      })
      .catch((error: unknown) => {
        log.warn({ err: error, jobId }, 'progress could not be written')
      })
  }

  return {
    report(progress) {
      latest = { ...progress }
      if (clock.now() - writtenAt >= PROGRESS_EVERY_MS) write(latest)
    },
    latest: () => latest,
    stop() {
      isStopped = true
    },
    written: () => writing,
  }
}

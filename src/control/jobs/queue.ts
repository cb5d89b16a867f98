// Which job is next. Every kind has its own slots and is checked by itself, and within a kind the servers take turns,
// so that no number of queued jobs of one kind or of one server delays another. The database work does not grow with
// the length of the queue: a kind is checked when something about it may have changed, and then one row at a time, by
// index.

import { lockServer } from '../db/lock-server.ts'
import type { Changes } from '../db/row-changes.ts'
import type { Db, JobRow } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { isOnLastStart } from './crashes.ts'
import { factsOf, type JobHandler } from './handler.ts'
import * as store from './store.ts'

export const LEASE_MS = 30_000

export interface Queue {
  /** Something of this kind may be due, or may have room to run now. Without a kind: of any. */
  mark(kind?: string): void
  /** Claims and begins everything that may run now. What fails is marked still; the first such error is thrown at the end. */
  claimDue(): Promise<void>
}

export function createQueue(deps: {
  db: Db
  clock: { now(): number }
  /** Who claims. */
  owner: string
  changes: Changes
  handlers: ReadonlyMap<string, JobHandler>
  /** The servers for which a job of this kind runs now. */
  busyServers: (kind: string) => ReadonlySet<string>
  /** Whether a job runs that is on its last start. */
  isLastStartRunning: () => boolean
  begin: (row: JobRow, handler: JobHandler) => void
}): Queue {
  const { db, clock, owner, changes, handlers, busyServers, isLastStartRunning, begin } = deps
  const mustWait = (row: JobRow) => isOnLastStart(row) && isLastStartRunning()
  const marked = new Set<string>()
  /** The server of each kind that was served last: the one after it is next. */
  const served = new Map<string, string>()

  /** False if somebody else was quicker. */
  const claim = (row: JobRow, handler: JobHandler, now: number) =>
    transact(db, {}, async (trx) => {
      await lockServer(trx, row.server_id)
      if (!(await store.claimJob(trx, row.id, owner, now, LEASE_MS))) return false
      await handler.onBegin?.(trx, factsOf(row))
      changes.tellAfter(trx, row.id)
      return true
    })

  /** The oldest due job of the first server after the one served last that has none of this kind running. */
  async function next(kind: string, busy: ReadonlySet<string>, now: number): Promise<JobRow | undefined> {
    const last = served.get(kind)
    let after = last
    let isWrapped = last === undefined
    for (;;) {
      const row = await store.firstDue(db, { kind, now, ...(after === undefined ? {} : { afterServer: after }) })
      const isFullCircle = isWrapped && last !== undefined && row !== undefined && row.server_id > last
      if (isFullCircle || (!row && isWrapped)) return undefined
      if (row && !busy.has(row.server_id) && !mustWait(row)) return row
      isWrapped ||= row === undefined
      after = row?.server_id
    }
  }

  /** Fills the slots once: one that becomes free meanwhile marks the kind anew, so that the other kinds come first. */
  async function fill(kind: string, handler: JobHandler, now: number): Promise<void> {
    for (let claimed = 0; claimed < handler.atOnce; ) {
      const busy = busyServers(kind)
      if (busy.size >= handler.atOnce) return
      const row = await next(kind, busy, now)
      if (!row) return
      served.set(kind, row.server_id)
      if (!(await claim(row, handler, now))) continue
      claimed++
      begin({ ...row, attempts: row.attempts + 1 }, handler)
    }
  }

  return {
    mark(kind) {
      for (const one of kind === undefined ? handlers.keys() : [kind]) marked.add(one)
    },

    async claimDue() {
      const errors: unknown[] = []
      for (const kind of [...marked]) {
        marked.delete(kind)
        const handler = handlers.get(kind)
        if (!handler) continue
        try {
          // The time after the mark is gone: whatever it stood for is due by now, and what comes later marks anew.
          await fill(kind, handler, clock.now())
        } catch (error) {
          marked.add(kind)
          errors.push(error)
        }
      }
      if (errors.length > 0) throw errors[0]
    },
  }
}

// Which backups a policy keeps. Pure: it decides, and touches nothing.
import type { RetentionPolicy } from './backup-plans.ts'

export interface Candidate {
  id: string
  createdAt: number
  isLocked: boolean
}

const HOUR_MS = 3600_000
const DAY_MS = 24 * HOUR_MS
/** 1970-01-01 was a Thursday; weeks begin on Monday. */
const MONDAY_OFFSET_DAYS = 3

const PERIODS = {
  keepHourly: (at: number) => Math.floor(at / HOUR_MS),
  keepDaily: (at: number) => Math.floor(at / DAY_MS),
  keepWeekly: (at: number) => Math.floor((Math.floor(at / DAY_MS) + MONDAY_OFFSET_DAYS) / 7),
  keepMonthly: (at: number) => new Date(at).getUTCFullYear() * 12 + new Date(at).getUTCMonth(),
} as const

/**
 * Those of the completed backups that no rule keeps, newest first. Locked ones take their place in a rule as any other,
 * and are never in the answer. A policy without a rule keeps everything.
 */
export function planExpiry<T extends Candidate>(backups: readonly T[], policy: RetentionPolicy): T[] {
  if (Object.values(policy).every((rule) => rule === null)) return []
  const newestFirst = backups.toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
  const kept = new Set(newestFirst.slice(0, policy.keepLast ?? 0))
  for (const [rule, periodOf] of Object.entries(PERIODS) as [keyof typeof PERIODS, (at: number) => number][]) {
    for (const backup of newestOfEach(newestFirst, periodOf, policy[rule] ?? 0)) kept.add(backup)
  }
  return newestFirst.filter((backup) => !kept.has(backup) && !backup.isLocked)
}

function newestOfEach<T extends Candidate>(newestFirst: readonly T[], periodOf: (at: number) => number, count: number) {
  const newest = new Map<number, T>()
  for (const backup of newestFirst) {
    const period = periodOf(backup.createdAt)
    if (newest.has(period)) continue
    if (newest.size === count) break
    newest.set(period, backup)
  }
  return newest.values()
}

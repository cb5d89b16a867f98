// What the rules do to the backups that there are. It is decided by the same function as in the service.
import { planExpiry } from '../../../../../../src/contract/backups/expiry.ts'
import type { Backup, RetentionPolicy } from '../../../../../../src/sdk/index.ts'

export interface Fate {
  id: string
  name: string
  createdAt: number
  isLocked: boolean
  isKept: boolean
}

type Facts = Pick<Backup, 'id' | 'name' | 'status' | 'isLocked' | 'createdAt'>

export function previewOf(backups: readonly Facts[], policy: RetentionPolicy): Fate[] {
  const candidates = backups
    .filter(({ status }) => status === 'completed')
    .map(({ id, name, isLocked, createdAt }) => ({ id, name, isLocked, createdAt: Date.parse(createdAt) }))
  const expired = new Set(planExpiry(candidates, policy).map(({ id }) => id))
  return candidates.map((each) => ({ ...each, isKept: !expired.has(each.id) }))
}

export interface CalendarDay {
  /** Midnight, UTC: the days of the rules. */
  at: number
  kept: Fate[]
  going: Fate[]
}

export interface CalendarMonth {
  at: number
  /** Empty places before the first day; weeks begin on Monday. */
  offset: number
  days: CalendarDay[]
}

const DAY_MS = 24 * 3600_000
const MONTHS_AT_MOST = 12

/** The months that have backups, newest first. */
export function calendarOf(fates: readonly Fate[]): CalendarMonth[] {
  const byDay = Map.groupBy(fates, ({ createdAt }) => Math.floor(createdAt / DAY_MS))
  const months = new Set(fates.map(({ createdAt }) => monthOf(createdAt)))
  return [...months]
    .toSorted((a, b) => b - a)
    .slice(0, MONTHS_AT_MOST)
    .map((at) => ({ at, offset: (new Date(at).getUTCDay() + 6) % 7, days: daysOf(at, byDay) }))
}

const monthOf = (at: number) => Date.UTC(new Date(at).getUTCFullYear(), new Date(at).getUTCMonth())

function daysOf(month: number, byDay: Map<number, Fate[]>): CalendarDay[] {
  const first = new Date(month)
  const count = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate()
  return Array.from({ length: count }, (_, index) => {
    const at = month + index * DAY_MS
    const found = byDay.get(at / DAY_MS) ?? []
    return { at, kept: found.filter(({ isKept }) => isKept), going: found.filter(({ isKept }) => !isKept) }
  })
}

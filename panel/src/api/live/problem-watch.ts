// Which entries of the activity are problems, and whether there is a new one.
import type { ActivityEntry } from '../../../../src/sdk/index.ts'

/** So many entries are looked at to see whether anything went wrong. */
export const NEWEST = 20

/** What went wrong, as the activity names it. */
export const PROBLEM_EVENTS = [
  'game.crashed',
  'game.over_quota',
  'backup.failed',
  'backup.damage_found',
  'backup.lost',
  'backup.offsite_failed',
  'offsite.removal_held',
  'backup.rehearsal_failed',
  'backup.restore_failed',
  'backup.restore_unfinished',
  'schedule.failed',
  'job.failed',
  'subdomain.provider_failed',
] as const satisfies readonly ActivityEntry['event'][]
export type ProblemEvent = (typeof PROBLEM_EVENTS)[number]

/** Or may have one, where more has happened since than was read. */
export function hasNewProblem(
  newest: readonly Pick<ActivityEntry, 'id' | 'event'>[],
  known: string | undefined,
): boolean {
  const at = newest.findIndex(({ id }) => id === known)
  const since = at < 0 ? newest : newest.slice(0, at)
  const isAllRead = at >= 0 || newest.length < NEWEST
  return !isAllRead || since.some(({ event }) => PROBLEM_EVENTS.some((problem) => problem === event))
}

// Outcomes that no order of whole operations gives and that are right all the same, each with its reason: the outcome is
// taken for another one, which has to be the outcome of some order, where what does not matter is forgotten.
import type { Outcome, Pair, Role } from './schedules.ts'

interface Excuse {
  why: string
  /** The operations that it is about, in either role. */
  pair: readonly [RegExp, RegExp]
  /** The outcome that it stands for, or the same if it has nothing to do with it. `role` is that of the first of the pair. */
  take?(outcome: Outcome, role: Role): Outcome
  /** What is left of an outcome without what does not matter. */
  forget?(outcome: Outcome): Outcome
}

const other = (role: Role): Role => (role === 'A' ? 'B' : 'A')

const answered = (outcome: Outcome, role: Role, answer: string): Outcome => ({
  ...outcome,
  answers: { ...outcome.answers, [role]: answer },
})

/** Of a job about a backup: it has ended, and has said what came of it. */
function asIfNoted(outcome: Outcome, kind: string, event: string): Outcome {
  const { state } = outcome
  const jobs = state.jobs.map((job) => job.replace(`${kind} failed not_found`, `${kind} completed`)).sort()
  const activity = state.activity.filter((each) => each !== 'job.failed' && each !== event)
  return { ...outcome, state: { ...state, jobs, activity: [...activity, event].sort() } }
}

export const EXCUSES: readonly Excuse[] = [
  {
    why: 'Who asks for a subdomain to go that is on its way out is answered when it has gone, as the first was.',
    pair: [/^delete subdomain$/, /^delete subdomain$/],
    take: (outcome, role) =>
      outcome.answers.A === '204' && outcome.answers.B === '204' ? answered(outcome, role, '404 not_found') : outcome,
  },
  {
    why: 'Who deletes a subdomain is answered 204 when that took less than 5 seconds and 202 otherwise; the work goes on.',
    pair: [/^delete subdomain$/, /./],
    take: (outcome, role) => (outcome.answers[role] === '202' ? answered(outcome, role, '204') : outcome),
  },
  {
    why: 'The links of a revoked token lead nowhere, which is said in the words for a link that does not exist.',
    pair: [/^(upload|put content)$/, /^revoke token$/],
    take: (outcome, role) =>
      outcome.answers[role] === '404 not_found' ? answered(outcome, role, '401 unauthenticated') : outcome,
  },
  {
    why: 'A job that is asked to stop when its work is done has been asked to stop, and has completed.',
    pair: [/^cancel job$/, /./],
    take(outcome, role) {
      const isTooLate = outcome.answers[role] === '202' && !outcome.state.jobs.some((job) => job.includes('cancelled'))
      if (!isTooLate) return outcome
      const activity = outcome.state.activity.filter((event) => event !== 'job.cancelled')
      return answered({ ...outcome, state: { ...outcome.state, activity } }, role, 'nothing to cancel')
    },
  },
  {
    why: 'A restore that is asked to stop when its safety backup is finished keeps it, and deletes one that is not.',
    pair: [/^cancel job$/, /^restore( one file)?$/],
    take(outcome) {
      const { state } = outcome
      const isMade = state.backups.includes('Before restoring kept completed free')
      if (!isMade || !state.jobs.some((job) => /^restore cancelled/.test(job))) return outcome
      const isOther = (line: string) => !line.startsWith('Before restoring kept ')
      const completed = state.activity.lastIndexOf('backup.completed')
      return {
        ...outcome,
        state: {
          ...state,
          backups: state.backups.filter(isOther),
          stored: state.stored.filter(isOther),
          jobs: [...state.jobs, 'backup.delete completed'].sort(),
          activity: state.activity.with(completed, 'backup.cancelled').sort(),
        },
      }
    },
  },
  {
    why: 'A backup may be deleted while it is verified: there is nothing left to say of it, or nothing left to read.',
    pair: [/^verify backup$/, /^(delete backup|apply retention)$/],
    take: (outcome) => asIfNoted(outcome, 'verify', 'backup.verified'),
  },
  {
    why: 'So it may be while it is rehearsed.',
    pair: [/^rehearse backup$/, /^(delete backup|apply retention)$/],
    take: (outcome) => asIfNoted(outcome, 'rehearse', 'backup.rehearsal_failed'),
  },
  {
    why: 'How far the work came that is under way when its server goes does not matter, as long as none of it fails.',
    pair: [
      /^(create backup|verify backup|rehearse backup|restore|restore one file|pack files)$/,
      /^(delete|purge) server$/,
    ],
    forget(outcome) {
      const { state } = outcome
      if (!/^(not_found|deleted)/.test(state.server)) return outcome
      const ends = /^(backup.(completed|cancelled|verified|rehearsal_failed|restored|restore_cancelled)|file.packed)$/
      const jobs = /^(backup|backup.delete|verify|rehearse|restore|pack) (completed|cancelled)$/
      const made = /^(by [AB]|Before restoring kept) (completed )?free/
      return {
        ...outcome,
        state: {
          ...state,
          jobs: state.jobs.filter((job) => !jobs.test(job)),
          activity: state.activity.filter((event) => !ends.test(event)),
          backups: state.backups.filter((backup) => !made.test(backup)),
          stored: state.stored.filter((backup) => !made.test(backup)),
        },
      }
    },
  },
  {
    why: 'A subdomain that has to go before it is confirmed was never active.',
    pair: [/^(create subdomain|undelete server)$/, /^((delete|purge) server|delete subdomain)$/],
    forget({ state, ...outcome }) {
      const activity = state.activity.filter((event) => event !== 'subdomain.activated')
      return { ...outcome, state: { ...state, activity } }
    },
  },
  {
    why: 'Who deletes files of a server that goes meanwhile is told, truly, that none of them was there any more.',
    pair: [/^delete files$/, /^(delete|purge) server$/],
    take: (outcome, role) =>
      outcome.answers[role] === '200' && !outcome.state.activity.includes('file.deleted')
        ? answered(outcome, role, '404 not_found')
        : outcome,
  },
  {
    why: 'A file that goes while another is about to take its place counts as replaced: what was there is in the trash.',
    pair: [/^put content$/, /^(delete files|move file)$/],
    take: (outcome, role) => (outcome.answers[role] === '200' ? answered(outcome, role, '201') : outcome),
  },
]

/** The outcome itself, and what it may be taken for; each with what is to be forgotten of what it is compared with. */
export function* readingsOf(pair: Pair, outcome: Outcome): Generator<[Outcome, (serial: Outcome) => Outcome]> {
  yield [outcome, (serial) => serial]
  for (const { pair: names, take, forget = (whole: Outcome) => whole } of EXCUSES) {
    for (const role of ['A', 'B'] as const) {
      const mine = role === 'A' ? pair.a : pair.b
      const others = other(role) === 'A' ? pair.a : pair.b
      if (names[0].test(mine) && names[1].test(others)) yield [forget(take?.(outcome, role) ?? outcome), forget]
    }
  }
}

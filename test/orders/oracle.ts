// What may come of two operations at once: what comes of them one after the other, in one order or the other, or what
// comes of one of them where the other was refused because of it. And what may never be.
import { readingsOf } from './excuses.ts'
import type { State } from './scene.ts'
import type { Outcome, Pair, Role } from './schedules.ts'

export interface Serial {
  /** In words, for the report. */
  order: string
  outcome: Outcome
}

/** Refusals that tell of other work under way: the caller may ask again, and nothing has happened. */
const REFUSED = ['409 server_busy', '409 backup_not_ready']

/** What is wrong with an outcome, in sentences; none if it is fine. */
export function judge(pair: Pair, outcome: Outcome, serials: readonly Serial[]): string[] {
  const faults = [...alwaysWrong(outcome)]
  if (faults.length > 0) return faults
  for (const [reading, forget] of readingsOf(pair, outcome))
    if (serials.some((serial) => isSame(reading, forget(serial.outcome)))) return []
  return [`no order of the two gives this: ${nearest(outcome, serials)}`]
}

function* alwaysWrong({ answers, state, stuck }: Outcome): Generator<string> {
  for (const [role, answer] of Object.entries(answers))
    if (answer?.startsWith('5')) yield `${role} was answered ${answer}`
  for (const job of stuck) yield `a job never ends: ${job}`
  if (state.chain !== 'intact') yield `the activity is broken: ${state.chain}`
  const [, limit] = /"diskBytes":(\w+)/.exec(state.server) ?? []
  if (state.server.startsWith('ready') && limit !== state.quota)
    yield `the server says that its quota is ${limit}, and the agent enforces ${state.quota}`
  for (const backup of state.backups) {
    const [, name, lock] = /^(.*) completed (\w+)$/.exec(backup) ?? []
    // One that is free here and locked there is spared by a recovery, and is put right when the two are compared.
    const kept = lock === 'free' ? [`${name} free `, `${name} locked `] : [`${name} locked `]
    if (name !== undefined && !state.stored.some((stored) => kept.includes(stored)))
      yield `the backup "${backup}" is shown; the store has ${JSON.stringify(state.stored)}`
  }
}

function isSame(outcome: Outcome, serial: Outcome): boolean {
  const answered = (role: Role) => {
    const given = outcome.answers[role]
    return serial.answers[role] === null ? REFUSED.includes(given ?? '') : given === serial.answers[role]
  }
  return answered('A') && answered('B') && JSON.stringify(outcome.state) === JSON.stringify(serial.state)
}

/** The differences from the order that it is most like. */
function nearest(outcome: Outcome, serials: readonly Serial[]): string {
  const all = serials.map((serial) => ({ serial, differences: differences(outcome, serial.outcome) }))
  all.sort((a, b) => a.differences.length - b.differences.length)
  const [best] = all
  return best ? `compared with ${best.serial.order}, ${best.differences.join('; ')}` : 'there is none'
}

function differences(outcome: Outcome, serial: Outcome): string[] {
  const found: string[] = []
  for (const role of ['A', 'B'] as const) {
    const [is, would] = [outcome.answers[role], serial.answers[role]]
    if (is !== would) found.push(`${role} was answered ${is} instead of ${would ?? 'a refusal'}`)
  }
  for (const field of Object.keys(outcome.state) as (keyof State)[]) {
    const [is, would] = [outcome.state[field], serial.state[field]]
    if (JSON.stringify(is) !== JSON.stringify(would)) found.push(`${field} ${changeOf(is, would)}`)
  }
  return found
}

function changeOf(is: string | string[], would: string | string[]): string {
  if (!Array.isArray(is) || !Array.isArray(would)) return `is ${is} instead of ${would}`
  const more = without(is, would)
  const less = without(would, is)
  return [...more.map((item) => `has "${item}"`), ...less.map((item) => `lacks "${item}"`)].join(', ')
}

/** Multisets. */
function without(items: readonly string[], others: readonly string[]): string[] {
  const left = [...others]
  return items.filter((item) => {
    const index = left.indexOf(item)
    if (index >= 0) left.splice(index, 1)
    return index < 0
  })
}

// A backup or a schedule on the command line: its id, its name, the beginning of either where only one has it, or `latest`.
import type { Backup, Client, Schedule } from '../sdk/index.ts'
import type { Context } from './context.ts'
import { CommandError, EXIT, UsageError } from './exit-codes.ts'
import { safe } from './text.ts'

const LATEST = 'latest'
const SHOWN_MAX = 10

interface Named {
  id: string
  name: string
}

export interface Kind<T> {
  noun: string
  prefix: string
  /** What `latest` stands for. */
  latest(items: readonly T[]): T | undefined
}

export const BACKUP: Kind<Backup> = {
  noun: 'backup',
  prefix: 'bkp',
  latest: (backups) => newest(backups.filter(({ status }) => status === 'completed')),
}
const SCHEDULE: Kind<Schedule> = { noun: 'schedule', prefix: 'sch', latest: newest }

/** Ids sort by the time at which they were made. */
function newest<T extends Named>(items: readonly T[]): T | undefined {
  return items.reduce<T | undefined>((last, item) => (last === undefined || item.id > last.id ? item : last), undefined)
}

/** Asks the service only for what is no whole id: a token that may not list can still use ids. */
export function backupIdsOf(context: Context, client: Client, serverId: string, references: readonly string[]) {
  const list = () => Array.fromAsync(client.backups.all(serverId, { limit: 100 }, { signal: context.io.signal }))
  return idsOf(context, BACKUP, references, list)
}

export async function backupIdOf(
  context: Context,
  client: Client,
  serverId: string,
  reference: string,
): Promise<string> {
  const [id = ''] = await backupIdsOf(context, client, serverId, [reference])
  return id
}

export async function scheduleIdOf(
  context: Context,
  client: Client,
  serverId: string,
  reference: string,
): Promise<string> {
  const { signal } = context.io
  const list = () => Array.fromAsync(client.backups.allSchedules(serverId, { limit: 100 }, { signal }))
  const [id = ''] = await idsOf(context, SCHEDULE, [reference], list)
  return id
}

/** All of them before anything is done with the first. */
async function idsOf<T extends Named>(
  context: Context,
  kind: Kind<T>,
  references: readonly string[],
  list: () => Promise<T[]>,
): Promise<string[]> {
  const isId = (reference: string) => new RegExp(`^${kind.prefix}_[0-9a-z]{26}$`).test(reference)
  // An empty one is a variable that was not set, and the beginning of everything.
  if (references.includes('')) throw new UsageError(`The ${kind.noun} is empty.`)
  const items = references.every(isId) ? [] : await list()
  const ids = references.map((reference) => {
    if (isId(reference)) return reference
    const { id, name } = pick(kind, items, reference)
    // Who gave a whole name knows which one is meant.
    if (name !== reference) context.note(`${safe(reference)} is ${safe(name)} (${id}).`)
    return id
  })
  return [...new Set(ids)]
}

/** A whole name counts before the beginning of one. */
export function pick<T extends Named>(kind: Kind<T>, items: readonly T[], reference: string): T {
  const named = items.filter(({ name }) => name === reference)
  const latest = reference === LATEST ? kind.latest(items) : undefined
  const exact = [...new Set(latest ? [latest, ...named] : named)]
  const begun = items.filter(({ id, name }) => id.startsWith(reference) || name.startsWith(reference))
  const candidates = exact.length > 0 || reference === LATEST ? exact : begun
  const [only, ...others] = candidates
  if (!only) throw absent(kind.noun, reference)
  if (others.length > 0) throw ambiguous(kind.noun, candidates, reference)
  return only
}

function absent(noun: string, reference: string): CommandError {
  const what = reference === LATEST ? `completed ${noun}` : `${noun} ${JSON.stringify(reference)}`
  return new CommandError(`There is no ${what}. "gamekeeper ${noun} ls SERVER" lists them.`, EXIT.notFound)
}

function ambiguous(noun: string, candidates: readonly Named[], reference: string): CommandError {
  const more = candidates.length - SHOWN_MAX
  const lines = [
    `${JSON.stringify(reference)} matches ${candidates.length} ${noun}s. Use its id, or more of its name:`,
    ...candidates.slice(0, SHOWN_MAX).map(({ id, name }) => `  ${id}  ${safe(name)}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ]
  return new CommandError(lines.join('\n'), EXIT.conflict, 'ambiguous')
}

// The activity against the history: what happened is recorded exactly once, what did not is not recorded.
import { setTimeout as delay } from 'node:timers/promises'
import { AGENT_PREFIX, expectOk } from '../history.ts'
import { missingFrom } from '../model.ts'
import type { Round } from '../round.ts'

export interface Entry {
  id: string
  serverId: string | null
  event: string
  userAgent: string | null
  requestId: string | null
  properties: Record<string, unknown>
}

/**
 * A change whose entry the database refused is answered with success, and recorded once the database takes it: within the
 * longest pause between two attempts. If it is not there by then, it will not come.
 */
const SETTLES_WITHIN_MS = 120_000

/** Oldest first. */
export async function readActivity({ history }: Round): Promise<Entry[]> {
  const headers = { accept: 'application/x-ndjson' }
  const { body } = expectOk(await history.send({ method: 'GET', target: '/activity', headers }))
  return String(body)
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Entry)
    .reverse()
}

export async function checkActivity(round: Round): Promise<Entry[]> {
  const deadline = performance.now() + SETTLES_WITHIN_MS
  let entries = await readActivity(round)
  let faults = compareAll(round, entries)
  while (faults.length > 0 && performance.now() < deadline) {
    await delay(100)
    entries = await readActivity(round)
    faults = compareAll(round, entries)
  }
  for (const fault of faults) round.violation(fault)
  checkEnds(round, entries)
  const verified = expectOk(await round.history.send({ method: 'GET', target: '/activity/verify' }))
  if (!verified.body.intact) round.violation(`the chain of the activity is broken: ${verified.body.fault?.detail}`)
  return entries
}

const compareAll = (round: Round, entries: Entry[]) => [...compare(round, entries), ...untold(round, entries)]

/** What left the trash to make room, and no entry tells of. */
function untold({ leftTrash }: Round, entries: Entry[]): string[] {
  const told = entries
    .filter(({ event }) => event === 'file.trash_freed')
    .flatMap(({ serverId, properties }) => (properties.paths as string[]).map((path) => `${path} of ${serverId}`))
  const left = leftTrash.map(({ serverId, path }) => `${path} of ${serverId}`)
  return missingFrom(told, left).map((item) => `${item} left the trash, and no file.trash_freed tells of it`)
}

function compare({ expectations }: Round, entries: Entry[]): string[] {
  const counts = new Map<string, number>()
  for (const { userAgent, event } of entries) {
    if (!userAgent?.startsWith(AGENT_PREFIX)) continue
    const key = `${userAgent.slice(AGENT_PREFIX.length)} ${event}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return expectations.flatMap(({ op, event, least, most, because }) => {
    const count = counts.get(`${op} ${event}`) ?? 0
    if (count < least) return [`${event} is not recorded, although ${because}`]
    if (count > most) return [`${event} is recorded ${count === 1 ? 'although' : `${count} times:`} ${because}`]
    return []
  })
}

const AFTER_DELETION = new Set(['access.denied', 'server.deletion_started', 'server.undeleted', 'server.purged'])

/** What is deleted has no more history until it is brought back, what is purged none at all, and what ends ends once. */
function checkEnds(round: Round, entries: Entry[]): void {
  const last = new Map<string, string>()
  const ended = new Set<string>()
  for (const { serverId, event, properties, id } of entries) {
    const before = serverId === null ? undefined : last.get(serverId)
    if (before === 'server.purged' || (before && !AFTER_DELETION.has(event)))
      round.violation(`${event} of ${serverId} is recorded after ${before}`)
    if (serverId !== null && (event === 'server.deleted' || event === 'server.purged')) last.set(serverId, event)
    if (serverId !== null && event === 'server.undeleted') last.delete(serverId)
    const end = endOf(event, properties)
    if (end === undefined) continue
    if (ended.has(end)) round.violation(`${end} ended twice, the second time by ${event} (${id})`)
    ended.add(end)
  }
}

const BACKUP_ENDS = ['backup.completed', 'backup.failed', 'backup.cancelled']
const JOB_ENDS = [
  ...['file.packed', 'file.unpacked', 'file.pulled', 'job.failed'],
  ...['backup.restored', 'backup.restore_failed', 'backup.restore_cancelled', 'backup.restore_undone'],
]

function endOf(event: string, { backupId, jobId }: Record<string, unknown>): string | undefined {
  if (BACKUP_ENDS.includes(event)) return `the backup ${backupId}`
  return JOB_ENDS.includes(event) ? `the job ${jobId}` : undefined
}

// The activity against the history: what happened is recorded exactly once, what did not is not recorded.
import { setTimeout as delay } from 'node:timers/promises'
import { AGENT_PREFIX, expectOk } from '../history.ts'
import type { Round } from '../round.ts'

export interface Entry {
  id: string
  serverId: string | null
  event: string
  userAgent: string | null
  requestId: string | null
  properties: Record<string, unknown>
}

/** Facts of the agent are written down after the answer. If all is not there by then, it will not come. */
const SETTLES_WITHIN_MS = 4000

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
  let faults = compare(round, entries)
  while (faults.length > 0 && performance.now() < deadline) {
    await delay(100)
    entries = await readActivity(round)
    faults = compare(round, entries)
  }
  for (const fault of faults) round.violation(fault)
  checkEnds(round, entries)
  const verified = expectOk(await round.history.send({ method: 'GET', target: '/activity/verify' }))
  if (!verified.body.intact) round.violation(`the chain of the activity is broken: ${verified.body.fault?.detail}`)
  return entries
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

/** What is deleted has no more history, and what ends ends once. */
function checkEnds(round: Round, entries: Entry[]): void {
  const deleted = new Set<string>()
  const ended = new Set<string>()
  for (const { serverId, event, properties, id } of entries) {
    if (serverId !== null && deleted.has(serverId) && !AFTER_DELETION.has(event))
      round.violation(`${event} of ${serverId} is recorded after server.deleted`)
    if (event === 'server.deleted' && serverId !== null) deleted.add(serverId)
    if (event === 'server.undeleted' && serverId !== null) deleted.delete(serverId)
    const end = endOf(event, properties)
    if (end === undefined) continue
    if (ended.has(end)) round.violation(`${end} ended twice, the second time by ${event} (${id})`)
    ended.add(end)
  }
}

const BACKUP_ENDS = ['backup.completed', 'backup.failed', 'backup.cancelled']
const JOB_ENDS = [
  ...['file.packed', 'file.unpacked', 'file.pulled', 'job.failed'],
  ...['backup.restored', 'backup.restore_failed', 'backup.restore_cancelled'],
]

function endOf(event: string, { backupId, jobId }: Record<string, unknown>): string | undefined {
  if (BACKUP_ENDS.includes(event)) return `the backup ${backupId}`
  return JOB_ENDS.includes(event) ? `the job ${jobId}` : undefined
}

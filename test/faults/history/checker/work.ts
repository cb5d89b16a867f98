// Jobs and backups: none is stuck, none is gone unasked, every backup that completed is whole, locks are what was answered.
import { expectOk } from '../history.ts'
import type { BackupModel, ServerModel } from '../model.ts'
import type { Round } from '../round.ts'
import type { Entry } from './activity.ts'

/** Waiting for something that takes far longer than it ever should is finding it stuck. */
const STUCK_AFTER_MS = 120_000
const PAUSE_MS = 50

interface Job {
  id: string
  kind: string
  status: string
  error: { code: string; detail: string } | null
  result: { damage?: unknown[] } | null
}

export interface ListedBackup {
  id: string
  isLocked: boolean
  status: string
  error: { code: string; detail: string } | null
  /** What could not be kept as it was. */
  warnings: string[]
}

export async function checkJobs(round: Round): Promise<void> {
  for (const server of round.servers) {
    const deadline = performance.now() + STUCK_AFTER_MS
    for (;;) {
      const active = await activeJobs(round, server)
      if (active.length === 0) break
      if (performance.now() > deadline) {
        for (const { kind, status, id } of active) round.violation(`${kind} (${id}) is stuck: ${status}`)
        break
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }
}

/** Empty for a server that is gone. In this order, since what is queued comes to run. */
async function activeJobs(round: Round, server: ServerModel): Promise<Job[]> {
  for (const status of ['queued', 'running']) {
    const target = `/servers/${server.id}/jobs?limit=100&status=${status}`
    const outcome = await round.history.send({ method: 'GET', target })
    if (outcome.kind === 'ok' && outcome.body.data.length > 0) return outcome.body.data
  }
  return []
}

export async function listAll<T>({ history }: Round, path: string, filter = ''): Promise<T[] | undefined> {
  const found: T[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = ['limit=100', filter, cursor && `cursor=${encodeURIComponent(cursor)}`].filter(Boolean).join('&')
    const outcome = await history.send({ method: 'GET', target: `${path}?${query}` })
    if (outcome.kind !== 'ok') return undefined
    found.push(...(outcome.body.data as T[]))
    cursor = outcome.body.nextCursor
  }
  return found
}

export async function checkBackups(round: Round, entries: readonly Entry[]): Promise<void> {
  for (const server of round.servers) {
    const listed = await listAll<ListedBackup>(round, `/backups/${server.id}`)
    if (!listed) {
      if (!server.isDeleted) round.violation(`${server.id} is gone, and nobody asked for that`)
      for (const { id, isLocked } of server.backups.values())
        if (isLocked) round.violation(`${id} of ${server.id} was locked with an answer, and is gone with its server`)
      continue
    }
    const byId = new Map(listed.map((backup) => [backup.id, backup]))
    for (const backup of server.backups.values()) compareBackup(round, server, backup, byId.get(backup.id))
    for (const { id, status, error } of listed) {
      if (status === 'failed' && !round.excuses.failedWork)
        round.violation(`the backup ${id} failed with ${error?.code}, and nothing stood in its way`)
      if (status === 'completed') await verify(round, server, id)
    }
  }
  for (const { event, properties } of entries) {
    if (event === 'backup.lost') round.violation(`the backup ${properties.backupId} is lost`)
    if (event === 'job.failed' && !round.excuses.failedWork)
      round.violation(`${properties.kind} failed, and nothing stood in its way: ${JSON.stringify(properties.error)}`)
  }
}

function compareBackup(round: Round, server: ServerModel, model: BackupModel, found: ListedBackup | undefined): void {
  if (!found && model.deletion === 'none')
    round.violation(`the backup ${model.id} of ${server.id} is gone, and nobody asked for that`)
  if (found && model.deletion === 'asked')
    round.violation(`the backup ${model.id} of ${server.id} was deleted with an answer, and is there`)
  if (found && found.isLocked !== model.isLocked)
    round.violation(`the backup ${model.id} is ${found.isLocked ? '' : 'not '}locked, and the opposite was answered`)
}

async function verify(round: Round, server: ServerModel, backupId: string): Promise<void> {
  const target = `/backups/${server.id}/${backupId}/verify`
  const asked = await round.history.send({ method: 'POST', target })
  if (asked.kind !== 'ok') return
  const job = await jobEnd(round, server.id, asked.body.id)
  if (job.status !== 'completed' || (job.result?.damage?.length ?? 0) > 0)
    round.violation(`the backup ${backupId} does not verify: ${JSON.stringify(job.error ?? job.result)}`)
}

/** Follows the job by its event stream, as a program would, and answers its last state. */
export async function jobEnd(round: Round, serverId: string, jobId: string): Promise<Job> {
  return (await lastEvent(round, `/servers/${serverId}/jobs/${jobId}`)) as Job
}

export async function backupEnd(round: Round, serverId: string, backupId: string): Promise<ListedBackup> {
  return (await lastEvent(round, `/backups/${serverId}/${backupId}`)) as ListedBackup
}

async function lastEvent(round: Round, target: string): Promise<unknown> {
  const { body } = expectOk(
    await round.history.send({
      method: 'GET',
      target,
      headers: { accept: 'text/event-stream' },
      signal: AbortSignal.timeout(STUCK_AFTER_MS),
    }),
  )
  const lines = String(body)
    .split('\n')
    .filter((line) => line.startsWith('data: '))
  return JSON.parse(lines.at(-1)?.slice('data: '.length) ?? 'null')
}

// A restore on disk: one folder in a server's staging, `restore-<job>`, with one file whose name is the phase that the
// restore is in. A phase changes by one rename, which needs no space and happens as a whole or not at all. While a
// restore is `stopped`, nobody changes the server's files until somebody has chosen how it ends.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RestoreReport, StoppedRestore } from '../contract/agent/agent-backups.ts'
import { fail } from '../contract/errors.ts'
import { hasCode } from '../kit/files/errno.ts'
import { digest } from './backups/format/format.ts'

export const RESTORE_FOLDER = 'restore-'
/** `forward` and `back` are gone on with at the next start; `done` and `undone` wait until control has recorded them. */
export const PHASES = ['forward', 'back', 'stopped', 'done', 'undone'] as const
export type RestorePhase = (typeof PHASES)[number]
/** What the first version of the format called the file of a restore that was committed: it knew no other phase. */
export const FIRST_FORMAT = 'journal'
/** While there is one of these, the tree is neither the old one nor the new one. */
const UNENDED = ['forward', 'back', 'stopped', FIRST_FORMAT] as const
/** Why it stopped, beside the phase; best effort, since the disk may be full. */
export const REASON_FILE = 'reason'
/** What was found in the way and moved to the trash: one line each, written before it is moved. */
export const NEWER_FILE = 'newer'

/** What the file of the phase holds, whatever the phase. */
export interface RestoreHead {
  /** Of the first version only what is displaced and the lists are known; it can go forward only. The second has no folders. */
  version: 1 | 2 | 3
  jobId: string
  backupId: string
  /** Of what was there before it. Restores of earlier versions do not say. */
  safetyBackupId?: string | null
  report: RestoreReport
  /** Where what the plan displaces goes. */
  trashBatches: string[]
  stagedCount: number
  /** Of the journal's lists, by name. */
  digests: Record<string, string>
}

/** Something newer than the plan that was in the way of a step. */
export interface NewerItem {
  by: 'forward' | 'back'
  path: string[]
  batch: string
}

export interface RestoreGate {
  stopped(): StoppedRestore | undefined
  /** Fails with `server_busy` while a restore has stopped in the middle. */
  requireOpen(): void
  /** Whether a batch of the trash holds what a restore may have to bring back: nothing empties it then. */
  holds(batch: string): boolean
  hold(batches: readonly string[]): void
  /** Of a restore that can no longer say what it has displaced. */
  holdAll(): void
  close(stopped: StoppedRestore): void
  open(): void
}

/** Closed from the beginning where staging holds a restore that has not ended. */
export function createRestoreGate(staging: string): RestoreGate {
  const found = findUnended(staging)
  let stopped = found?.stopped
  /** Of a restore that can no longer say what it has displaced, anything in the trash may be. */
  let holdsAll = found !== undefined && !found.isSound
  const held = new Set(found?.batches)
  return {
    stopped: () => stopped,
    requireOpen() {
      if (stopped) throw fail('server_busy', `${describeStop(stopped)} ${WHAT_TO_DO}`)
    },
    holds: (batch) => holdsAll || held.has(batch),
    hold(batches) {
      for (const batch of batches) held.add(batch)
    },
    close(why) {
      stopped = why
    },
    holdAll() {
      holdsAll = true
    },
    open() {
      stopped = undefined
      holdsAll = false
      held.clear()
    },
  }
}

export const WHAT_TO_DO =
  'Choose how it ends: POST /servers/{serverId}/restore/finish with the direction "forward" or "back".'

export function describeStop({ path, reason }: Pick<StoppedRestore, 'path' | 'reason'>): string {
  return `A restore has stopped in the middle${path === null ? '' : ` at ${JSON.stringify(path)}`}: ${reason}.`
}

interface Unended {
  stopped: StoppedRestore
  batches: string[]
  isSound: boolean
}

function findUnended(staging: string): Unended | undefined {
  for (const name of readdirSync(staging).filter((entry) => entry.startsWith(RESTORE_FOLDER))) {
    const folder = join(staging, name)
    for (const phase of UNENDED) {
      const text = readIfThere(join(folder, phase))
      if (text === undefined) continue
      const head = parseHead(text)
      const batches = [...(head?.trashBatches ?? []), ...newerItems(folder).map(({ batch }) => batch)]
      return { stopped: readStop(folder, head), batches, isSound: head !== undefined }
    }
  }
  return undefined
}

function readStop(folder: string, head: RestoreHead | undefined): StoppedRestore {
  const jobId = folder.slice(folder.lastIndexOf('/') + 1 + RESTORE_FOLDER.length)
  const said = parsed(readIfThere(join(folder, REASON_FILE)) ?? '') as Partial<StoppedRestore> | undefined
  const { since = Date.now(), path = null, reason = 'the reason could not be written down' } = said ?? {}
  return { jobId, backupId: head?.backupId ?? '', since, path, reason }
}

/** Undefined where it is not what was written. */
export function parseHead(text: string): RestoreHead | undefined {
  const at = text.indexOf('\n')
  const body = text.slice(at + 1)
  if (digest(Buffer.from(body)).toString('hex') !== text.slice(0, at)) return undefined
  const head = JSON.parse(body) as RestoreHead
  return head.version === 1 ? { ...UNKNOWN, ...head } : head
}

const UNKNOWN = {
  jobId: '',
  backupId: '',
  report: { filesRestored: 0, filesKept: 0, bytesRestored: 0, displaced: 0 },
  stagedCount: 0,
}

export function formatHead(head: RestoreHead): string {
  const body = JSON.stringify(head)
  return `${digest(Buffer.from(body)).toString('hex')}\n${body}`
}

/** Oldest first. A line that a crash has cut short stands for something that was not moved. */
export function newerItems(folder: string): NewerItem[] {
  const lines = (readIfThere(join(folder, NEWER_FILE)) ?? '').split('\n')
  return lines.flatMap((line) => {
    const item = parsed(line)
    return item ? [item as NewerItem] : []
  })
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

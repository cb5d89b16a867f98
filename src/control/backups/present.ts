// From a row to what callers see, and from a request or a manifest to a row.
import type { BackupReport } from '../../contract/agent/agent-backups.ts'
import { type Backup, IGNORED_MAX_BYTES, type NewBackup } from '../../contract/backups/backups.ts'
import { fail } from '../../contract/errors.ts'
import { newId } from '../../kit/ids.ts'
import type { BackupRow } from '../db/tables.ts'
import { NO_PROGRESS } from '../jobs/store.ts'
import { progressOf, type ShownBackup } from './store.ts'

const time = (at: number | null) => (at === null ? null : new Date(at).toISOString())

export function present(row: BackupRow | ShownBackup): Backup {
  return {
    id: row.id,
    serverId: row.server_id,
    name: row.name,
    ignored: row.ignored,
    isLocked: row.locked === 1,
    status: row.status,
    consistency: row.consistency,
    heldMs: row.held_ms,
    progress: progressFor(row),
    fileCount: row.file_count,
    sizeBytes: row.size_bytes,
    storedBytes: row.stored_bytes,
    checksum: row.checksum,
    warnings: JSON.parse(row.warnings),
    error: errorOf(row),
    createdAt: new Date(row.created_at).toISOString(),
    startedAt: time(row.started_at),
    completedAt: time(row.completed_at),
    verifiedAt: time(row.verified_at),
    rehearsedAt: time(row.rehearsed_at),
    rehearsal: row.rehearsal === null ? null : JSON.parse(row.rehearsal),
    offsite: offsiteOf(row),
  }
}

function offsiteOf({ offsite_state, offsite_stored_at, offsite_error }: BackupRow): Backup['offsite'] {
  if (offsite_state === null) return null
  const error = offsite_error === null ? null : JSON.parse(offsite_error)
  return { state: offsite_state, storedAt: time(offsite_stored_at), error }
}

function progressFor(row: BackupRow | ShownBackup) {
  if (row.status === 'completed') {
    const files = row.file_count ?? 0
    const bytes = row.size_bytes ?? 0
    return { filesDone: files, filesTotal: files, bytesDone: bytes, bytesTotal: bytes }
  }
  const known = row.status !== 'queued' && 'job_progress' in row ? progressOf(row.job_progress) : null
  return known ?? NO_PROGRESS
}

function errorOf(row: BackupRow): Backup['error'] {
  if (row.error !== null) return JSON.parse(row.error)
  return row.damage === null ? null : { code: 'backup_damaged', detail: row.damage }
}

export function defaultName(now: number): string {
  return `Backup at ${new Date(now).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

export function newBackupRow(
  serverId: string,
  { name, ignored = '', isLocked = false }: NewBackup,
  now: number,
  origin: BackupRow['origin'] = 'request',
): BackupRow {
  requireShort(ignored)
  return {
    id: newId('bkp', now),
    server_id: serverId,
    name: name ?? defaultName(now),
    ignored,
    locked: isLocked ? 1 : 0,
    origin,
    status: 'queued',
    job_id: null,
    consistency: null,
    held_ms: null,
    file_count: null,
    size_bytes: null,
    stored_bytes: null,
    checksum: null,
    warnings: '[]',
    error: null,
    damage: null,
    created_at: now,
    started_at: null,
    completed_at: null,
    verified_at: null,
    rehearsed_at: null,
    rehearsal: null,
    offsite_state: null,
    offsite_stored_at: null,
    offsite_error: null,
    deleted_at: null,
    replaced_at: null,
  }
}

export function requireShort(ignored: string): void {
  if (Buffer.byteLength(ignored) <= IGNORED_MAX_BYTES) return
  const errors = [{ path: '/ignored', message: `must not be longer than ${IGNORED_MAX_BYTES} bytes` }]
  throw fail('invalid_request', { detail: 'The patterns are too long.', errors })
}

/** Of a backup that has completed: `pending` where there is a mirror. */
export type FirstOffsiteState = 'pending' | null

export const firstOffsiteState = (isMirrored: boolean): FirstOffsiteState => (isMirrored ? 'pending' : null)

/** What a finished backup's manifest says of it, and that it is still to be sent to the mirror. */
export function reported(report: BackupReport, offsite: FirstOffsiteState): Partial<BackupRow> {
  return {
    status: 'completed',
    offsite_state: offsite,
    offsite_stored_at: null,
    offsite_error: null,
    ignored: report.ignored,
    consistency: report.consistency,
    held_ms: report.heldMs ?? null,
    file_count: report.fileCount,
    size_bytes: report.sizeBytes,
    stored_bytes: report.storedBytes,
    checksum: report.checksum,
    warnings: JSON.stringify(warningsOf(report)),
    error: null,
    damage: null,
    started_at: report.startedAt,
    completed_at: report.completedAt,
  }
}

function warningsOf({ warnings, warningCount }: BackupReport): string[] {
  const shown = warnings.slice(0, 100)
  return warningCount > shown.length ? [...shown, `… and ${warningCount - shown.length} more`] : shown
}

export const noSuchBackup = () => fail('not_found', 'No such backup.')

export function requireCompleted<T extends BackupRow>(row: T): T {
  if (row.status === 'completed') return row
  const detail = row.status === 'failed' ? 'The backup failed.' : 'The backup has not completed yet.'
  throw fail('backup_not_ready', detail)
}

/** What is still to be sent would be taken for lost. */
export function requireSent({ offsite_state: state }: BackupRow): void {
  if (state === 'pending' || state === 'failed')
    throw fail('backup_not_ready', 'The backup is not in the off-site store yet.')
}

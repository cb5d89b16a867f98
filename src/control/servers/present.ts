// Converts a server between its three shapes: the request, the row, and the response.
import type { GameState } from '../../contract/agent/agent-games.ts'
import { DEFAULT_ENTRIES_MAX } from '../../contract/fixed-limits.ts'
import { STOPPED } from '../../contract/games/power.ts'
import type { NewServer, Server, ServerChange } from '../../contract/servers.ts'
import { iso } from '../../kit/time.ts'
import type { ServerRow } from '../db/tables.ts'
import { sleepOf } from './sleep.ts'
import { NO_VARIABLES, shownVariables } from './variables.ts'

export function newServerRow(id: string, request: NewServer, now: number): ServerRow {
  return {
    id,
    name: request.name,
    description: request.description ?? null,
    game: request.game ?? null,
    ...NO_VARIABLES,
    port: request.port ?? null,
    limit_disk_bytes: request.limits?.diskBytes ?? null,
    limit_entries: request.limits?.entries === undefined ? DEFAULT_ENTRIES_MAX : request.limits.entries,
    limit_backups: request.limits?.backups ?? null,
    limit_subdomains: request.limits?.subdomains ?? null,
    limit_memory_bytes: request.limits?.memoryBytes ?? null,
    limit_cpu_percent: request.limits?.cpuPercent ?? null,
    limit_processes: request.limits?.processes ?? null,
    labels: JSON.stringify(request.labels ?? {}),
    status: 'ready',
    deleted_at: null,
    purge_at: null,
    frees: null,
    disk_bytes: null,
    disk_measured_at: null,
    unfinished_restore: null,
    game_state: null,
    auto_restart: (request.autoRestart ?? true) ? 1 : 0,
    sleep_after_minutes: request.sleep?.afterMinutes ?? null,
    created_at: now,
    updated_at: now,
  }
}

/** The columns that the change really changes. */
export function changedColumns(row: ServerRow, change: ServerChange): Partial<ServerRow> {
  const { limits = {} } = change
  const wanted: Partial<ServerRow> = {
    name: change.name,
    description: change.description,
    game: change.game,
    port: change.port,
    limit_disk_bytes: limits.diskBytes,
    limit_entries: limits.entries,
    limit_backups: limits.backups,
    limit_subdomains: limits.subdomains,
    limit_memory_bytes: limits.memoryBytes,
    limit_cpu_percent: limits.cpuPercent,
    limit_processes: limits.processes,
    labels: change.labels === undefined ? undefined : JSON.stringify(change.labels),
    auto_restart: change.autoRestart === undefined ? undefined : Number(change.autoRestart),
    sleep_after_minutes: change.sleep === undefined ? undefined : (change.sleep?.afterMinutes ?? null),
  }
  const entries = Object.entries(wanted) as [keyof ServerRow, unknown][]
  return Object.fromEntries(entries.filter(([column, value]) => value !== undefined && value !== row[column]))
}

export function differences(before: Server, after: Server): Record<string, { from: unknown; to: unknown }> {
  const changes: Record<string, { from: unknown; to: unknown }> = {}
  const fields = [
    'name',
    'description',
    'game',
    'variables',
    'port',
    'limits',
    'labels',
    'autoRestart',
    'sleep',
  ] as const
  for (const field of fields) {
    if (JSON.stringify(before[field]) !== JSON.stringify(after[field]))
      changes[field] = { from: before[field], to: after[field] }
  }
  return changes
}

function deletionOf({ deleted_at, purge_at, frees }: ServerRow): Server['deletion'] {
  if (deleted_at === null || purge_at === null || frees === null) return null
  return { deletedAt: iso(deleted_at), purgeAt: iso(purge_at), frees: JSON.parse(frees) }
}

export function present(row: ServerRow): Server {
  const { power, runtime } = gameStateOf(row)
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    game: row.game,
    variables: shownVariables(row),
    port: row.port,
    limits: {
      diskBytes: row.limit_disk_bytes,
      entries: row.limit_entries,
      backups: row.limit_backups,
      subdomains: row.limit_subdomains,
      memoryBytes: row.limit_memory_bytes,
      cpuPercent: row.limit_cpu_percent,
      processes: row.limit_processes,
    },
    labels: row.labels === '{}' ? {} : JSON.parse(row.labels),
    status: row.status,
    deletion: deletionOf(row),
    diskUsage:
      row.disk_bytes === null || row.disk_measured_at === null
        ? null
        : { sizeBytes: row.disk_bytes, measuredAt: iso(row.disk_measured_at) },
    unfinishedRestore: unfinishedRestoreOf(row),
    power,
    runtime,
    autoRestart: row.auto_restart === 1,
    sleep: sleepOf(row),
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  }
}

/** null in the row until the game was started for the first time. */
export const gameStateOf = ({ game_state: text }: Pick<ServerRow, 'game_state'>): GameState =>
  text === null ? NEVER_STARTED : JSON.parse(text)

const NEVER_STARTED: GameState = { power: STOPPED, runtime: null }

function unfinishedRestoreOf({ unfinished_restore: text }: ServerRow): Server['unfinishedRestore'] {
  if (text === null) return null
  const { jobId, backupId, since, path, reason } = JSON.parse(text)
  return { jobId, backupId, since: iso(since), path, reason }
}

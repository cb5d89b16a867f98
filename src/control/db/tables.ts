// The rows as stored in the database. Times are milliseconds, flags are 0 or 1, JSON is text, so that one query text
// serves both engines. Row types stop at the services.
import type { Kysely, Transaction } from 'kysely'

export interface TokenRow {
  id: string
  name: string
  /** SHA-256 of the secret, in hex. The secret itself is never stored. */
  hash: string
  scopes: string
  servers: string
  created_by: string | null
  created_at: number
  expires_at: number | null
  last_used_at: number | null
  revoked_at: number | null
}

export interface ServerRow {
  id: string
  name: string
  description: string | null
  game: string | null
  /** Given to the variables of its template, as JSON. */
  variables: string
  /** The same of those that nobody is shown. */
  secret_variables: string
  port: number | null
  limit_disk_bytes: number | null
  /** Files, directories and symlinks. */
  limit_entries: number | null
  limit_backups: number | null
  limit_subdomains: number | null
  limit_memory_bytes: number | null
  limit_cpu_percent: number | null
  limit_processes: number | null
  labels: string
  status: 'ready' | 'deleting' | 'deleted' | 'undeleting' | 'purging'
  /** Set while it is deleted and can be brought back. */
  deleted_at: number | null
  purge_at: number | null
  /** What purging it frees, as JSON: measured before its folders were put aside. */
  frees: string | null
  disk_bytes: number | null
  disk_measured_at: number | null
  /** As JSON, while a restore into it has stopped in the middle and nobody has chosen how it ends. */
  unfinished_restore: string | null
  /** As JSON, what the agent said of its game last; null until it has said something. */
  game_state: string | null
  /** 1: a game that has crashed is started again. */
  auto_restart: number
  /** null: its game never sleeps. */
  sleep_after_minutes: number | null
  /** As JSON, how its game is run; null: as a process. */
  runtime_choice: string | null
  created_at: number
  updated_at: number
}

export interface ActivityRow {
  /** The server's id, or '' for what concerns no server. */
  chain: string
  /** 1, 2, 3… within a chain, in the order of the commits. */
  seq: number
  id: string
  event: string
  actor_type: 'token' | 'system'
  actor_id: string
  actor_name: string
  source: string
  ip: string | null
  user_agent: string | null
  request_id: string | null
  properties: string
  at: number
  hash: string
}

export interface ActivityHeadRow {
  chain: string
  seq: number
  hash: string
  /** The time of the newest entry: times never go backwards within a chain. */
  at: number
  /** The last entry that retention has purged: where the chain that is left begins. */
  purged_seq: number
  purged_hash: string
  /** Covers all of this row under the key of the chain: nobody can shorten a chain at either end unnoticed. */
  seal: string
}

export interface JobRow {
  id: string
  kind: string
  server_id: string
  status: 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'
  /** 1 once somebody has asked for it to stop. */
  cancel: number
  input: string
  progress: string
  result: string | null
  error: string | null
  attempts: number
  /** How often the process went down while it ran. */
  crashes: number
  /** Not before this time: the back-off after a failed attempt. */
  due_at: number
  /** The process that runs it, and until when it may be taken for alive. */
  owner: string | null
  lease_until: number | null
  created_at: number
  started_at: number | null
  finished_at: number | null
}

export interface IdempotencyRow {
  token_id: string
  key: string
  fingerprint: string
  answer: string
  created_at: number
}

export interface InstanceRow {
  key: string
  value: string
}

export interface SubdomainRow {
  id: string
  server_id: string
  name: string
  zone: string
  /** The name with look-alike letters made the same. */
  skeleton: string
  status: 'pending' | 'active' | 'withdrawn' | 'deleting' | 'failed'
  reason: string | null
  propagated_at: number | null
  /** The record sets that the provider last confirmed, as JSON; what is ours where the marker has been lost. */
  confirmed: string | null
  /** The job that works on it, or was the last to do so. */
  job_id: string | null
  created_at: number
  updated_at: number
}

/** A released name, kept from other servers for a while. */
export interface HeldNameRow {
  zone: string
  name: string
  skeleton: string
  server_id: string
  until: number
}

export interface BackupRow {
  id: string
  server_id: string
  name: string
  ignored: string
  locked: number
  /** Who wanted it: somebody, a schedule, or a restore that keeps what it replaces. */
  origin: 'request' | 'schedule' | 'safety'
  status: 'queued' | 'running' | 'completed' | 'failed'
  /** The job that makes it. */
  job_id: string | null
  consistency: 'offline' | 'quiesced' | 'live' | null
  /** For how long a game held its world still. */
  held_ms: number | null
  file_count: number | null
  size_bytes: number | null
  stored_bytes: number | null
  checksum: string | null
  warnings: string
  error: string | null
  /** What was found wrong with its bytes, in a sentence; null while nothing was. */
  damage: string | null
  created_at: number
  started_at: number | null
  completed_at: number | null
  verified_at: number | null
  /** Of the last rehearsal that passed. */
  rehearsed_at: number | null
  /** As JSON: how the last rehearsal ended, without its log. */
  rehearsal: string | null
  /** Whether the mirror has it; null while it has not completed, and where there is no mirror. */
  offsite_state: 'pending' | 'stored' | 'failed' | null
  offsite_stored_at: number | null
  /** As JSON: why it could not be sent. */
  offsite_error: string | null
  /** Set once it is deleted for its owner; the row goes when the store has let go of it too. */
  deleted_at: number | null
  /** Of a safety backup: when its restore had replaced what it holds. null while that has not succeeded. */
  replaced_at: number | null
}

export interface RehearsalLogRow {
  backup_id: string
  server_id: string
  /** A list of lines, as JSON. */
  log: string
}

export interface RetentionRow {
  server_id: string
  keep_last: number | null
  keep_hourly: number | null
  keep_daily: number | null
  keep_weekly: number | null
  keep_monthly: number | null
  updated_at: number
}

export interface ScheduleRow {
  id: string
  server_id: string
  name: string
  cron: string
  time_zone: string
  name_pattern: string
  ignored: string
  locked: number
  only_if_changed: number
  enabled: number
  /** null while it is not enabled. */
  next_run_at: number | null
  last_run_at: number | null
  last_outcome: string | null
  last_backup_id: string | null
  action: 'backup' | 'rehearse'
  created_at: number
  updated_at: number
}

/** One of the user's own; those that come with us are no rows. */
export interface TemplateRow {
  id: string
  name: string
  description: string | null
  runtimes: string
  /** All of it, as JSON. */
  content: string
  srv: string | null
  default_port: number | null
  created_at: number
}

export interface SessionRow {
  id: string
  /** SHA-256 of the cookie's value, in hex. The value itself is never stored; nor is that of a link or an invitation. */
  hash: string
  /** The same of the proof that the page keeps. */
  proof_hash: string
  token_id: string
  created_at: number
  ends_at: number
  last_used_at: number
  /** Of the sign-in. */
  user_agent: string | null
  ip: string | null
}

/** Gone once it is used. */
export interface SignInLinkRow {
  hash: string
  token_id: string
  created_at: number
  expires_at: number
}

/** Gone once it is used or taken back. */
export interface InvitationRow {
  id: string
  hash: string
  name: string
  scopes: string
  servers: string
  created_by: string
  created_at: number
  expires_at: number
}

/** Of a backup that was deleted: its row is gone. */
export interface DeletedBackupRow {
  id: string
  deleted_at: number
}

export interface Tables {
  tokens: TokenRow
  servers: ServerRow
  activity: ActivityRow
  activity_heads: ActivityHeadRow
  jobs: JobRow
  idempotency: IdempotencyRow
  instance: InstanceRow
  subdomains: SubdomainRow
  held_names: HeldNameRow
  backups: BackupRow
  deleted_backups: DeletedBackupRow
  rehearsal_logs: RehearsalLogRow
  retention: RetentionRow
  schedules: ScheduleRow
  templates: TemplateRow
  sessions: SessionRow
  sign_in_links: SignInLinkRow
  invitations: InvitationRow
}

export type Db = Kysely<Tables>
export type Trx = Transaction<Tables>

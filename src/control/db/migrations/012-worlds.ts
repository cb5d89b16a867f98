import type { Migration } from '../migrate.ts'

export const worlds: Migration = {
  name: '012-worlds',
  statements: [
    'alter table backups add column held_ms bigint',
    'alter table backups add column rehearsed_at bigint',
    // As JSON: how the last rehearsal ended, without its log.
    'alter table backups add column rehearsal text',
    'create table rehearsal_logs (backup_id text primary key, server_id text not null, log text not null)',
    "alter table schedules add column action text not null default 'backup'",
  ],
}

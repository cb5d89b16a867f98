import type { Migration } from '../migrate.ts'

export const offsite: Migration = {
  name: '018-offsite',
  statements: [
    'alter table backups add column offsite_state text',
    'alter table backups add column offsite_stored_at bigint',
    // As JSON.
    'alter table backups add column offsite_error text',
    // Few are not in the mirror yet, and they are looked for after each backup.
    'create index backups_offsite on backups (offsite_state, id)',
  ],
}

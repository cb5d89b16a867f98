import type { Migration } from '../migrate.ts'

export const deletedBackups: Migration = {
  name: '019-deleted-backups',
  statements: [
    // Backups whose rows are gone because somebody wanted it: what else is not known here was not deleted.
    'create table deleted_backups (id text primary key, deleted_at bigint not null)',
    'create index deleted_backups_at on deleted_backups (deleted_at)',
  ],
}

import type { Migration } from '../migrate.ts'

/** Until now every safety backup counted as one of a restore that had succeeded. */
export const restores: Migration = {
  name: '005-restores',
  statements: [
    'alter table backups add column replaced_at bigint',
    "update backups set replaced_at = completed_at where origin = 'safety' and status = 'completed'",
    'alter table servers add column unfinished_restore text',
  ],
}

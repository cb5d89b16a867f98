import type { Migration } from '../migrate.ts'

export const servers: Migration = {
  name: '004-servers',
  statements: [
    'alter table servers add column deleted_at bigint',
    'alter table servers add column purge_at bigint',
    'alter table servers add column frees text',
    // What runs next of a kind: its servers in order, the oldest job of each first.
    'create index jobs_queue on jobs (status, kind, server_id, id, due_at)',
  ],
}

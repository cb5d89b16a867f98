import type { Migration } from '../migrate.ts'

export const jobBounds: Migration = {
  name: '006-job-bounds',
  statements: [
    'alter table jobs add column crashes integer not null default 0',
    // What a server has waiting, however many of its jobs have ended.
    "create index jobs_unfinished on jobs (server_id) where status in ('queued', 'running')",
  ],
}

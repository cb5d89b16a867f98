import type { Migration } from '../migrate.ts'

export const games: Migration = {
  name: '011-games',
  statements: [
    // As JSON: what the agent said of it last.
    'alter table servers add column game_state text',
    'alter table servers add column auto_restart integer not null default 1',
    'alter table servers add column limit_memory_bytes bigint',
    'alter table servers add column limit_cpu_percent integer',
    'alter table servers add column limit_processes integer',
  ],
}

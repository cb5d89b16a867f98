import type { Migration } from '../migrate.ts'

export const subdomains: Migration = {
  name: '002-subdomains',
  statements: [
    `create table subdomains (
      id text primary key,
      server_id text not null,
      name text not null,
      zone text not null,
      skeleton text not null,
      status text not null,
      reason text,
      propagated_at bigint,
      confirmed text,
      job_id text,
      created_at bigint not null,
      updated_at bigint not null
    )`,
    'create unique index subdomains_name on subdomains (zone, name)',
    'create index subdomains_server on subdomains (server_id, id)',
    'create index subdomains_skeleton on subdomains (zone, skeleton)',
    `create table held_names (
      zone text not null,
      name text not null,
      skeleton text not null,
      server_id text not null,
      until bigint not null,
      primary key (zone, name)
    )`,
    'create index held_names_skeleton on held_names (zone, skeleton)',
  ],
}

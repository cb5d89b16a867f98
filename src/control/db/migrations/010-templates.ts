import type { Migration } from '../migrate.ts'

export const templates: Migration = {
  name: '010-templates',
  statements: [
    `create table templates (
      id text primary key,
      name text not null,
      description text,
      runtimes text not null,
      content text not null,
      created_at bigint not null
    )`,
    "alter table servers add column variables text not null default '{}'",
    "alter table servers add column secret_variables text not null default '{}'",
    // Which servers use a template, asked before it is deleted.
    'create index servers_game on servers (game)',
  ],
}

import type { Migration } from '../migrate.ts'

export const sessions: Migration = {
  name: '016-sessions',
  statements: [
    `create table sessions (
      id text primary key,
      hash text not null,
      proof_hash text not null unique,
      token_id text not null,
      created_at bigint not null,
      ends_at bigint not null,
      last_used_at bigint not null
    )`,
    'create index sessions_token on sessions (token_id, id)',
    `create table sign_in_links (
      hash text primary key,
      token_id text not null,
      created_at bigint not null,
      expires_at bigint not null
    )`,
    'create index sign_in_links_token on sign_in_links (token_id, created_at)',
    `create table invitations (
      id text primary key,
      hash text not null unique,
      name text not null,
      scopes text not null,
      servers text not null,
      created_by text not null,
      created_at bigint not null,
      expires_at bigint not null
    )`,
    'create index invitations_created_by on invitations (created_by)',
  ],
}

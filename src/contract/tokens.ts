import { operation } from './operation.ts'
import { BOUNDS } from './operation-bounds.ts'
import { Closed, Id, Name, Nullable, OneOf, Page, PageQuery, type Static, Timestamp, Type } from './schema.ts'
import { Scope } from './scopes.ts'

/** The value of a token: the id of its record without the prefix, and the secret. */
export const TOKEN_FORM = /^gk_([0-9A-Za-z_-]{1,64})_([0-9a-fA-F]{64})$/

const AllServers = OneOf(['*'])
const ServerList = Type.Union([AllServers, Type.Array(Id, { maxItems: 1000 })], {
  description: '`*` for every server, or a list of server ids',
})

export const Token = Type.Object({
  id: Id,
  name: Name,
  scopes: Type.Array(Scope),
  servers: ServerList,
  createdBy: Nullable(Type.String({ description: 'The token that made this one; null for the first' })),
  createdAt: Timestamp,
  expiresAt: Nullable(Timestamp),
  lastUsedAt: Nullable(Timestamp),
})
export type Token = Static<typeof Token>

export const NewToken = Closed({
  name: Name,
  scopes: Type.Array(Scope, { minItems: 1, uniqueItems: true }),
  servers: Type.Union([AllServers, Type.Array(Id, { minItems: 1, maxItems: 1000, uniqueItems: true })], {
    description: '`*` for every server, or a list of server ids. Never wider than the servers of the token that asks',
  }),
  expiresAt: Type.Optional(Nullable(Timestamp)),
})
export type NewToken = Static<typeof NewToken>

export const MintedToken = Type.Object({
  ...Token.properties,
  token: Type.String({ description: 'The value to send as `Authorization: Bearer …`. Shown this once' }),
})
export type MintedToken = Static<typeof MintedToken>

export const OwnToken = Type.Object({
  id: Id,
  name: Name,
  scopes: Type.Array(Scope),
  servers: Type.Union([AllServers, Type.Array(Type.Object({ id: Id, name: Name }))], {
    description: '`*` for every server, or those that the token is for and that are not deleted, with their names',
  }),
  expiresAt: Nullable(Timestamp),
})
export type OwnToken = Static<typeof OwnToken>

const example = {
  id: 'tok_01k9zq6m3t8v5w2x7y4c1b6d9e',
  name: 'nightly backups',
  scopes: ['backups:read', 'backups:write'],
  servers: ['srv_01k9zq6m3t8v5w2x7y4c1b6d9e'],
  createdBy: 'tok_01k9zq000000000000000000a1',
  createdAt: '2026-11-15T00:00:00.000Z',
  expiresAt: null,
  lastUsedAt: null,
}
const newExample = { name: example.name, scopes: example.scopes, servers: example.servers }

export const createToken = operation({
  id: 'createToken',
  method: 'POST',
  path: '/tokens',
  tag: 'Tokens',
  summary: 'Make a token',
  description: 'The new token can do and reach at most what the token that asks can. Its value is in the answer, once.',
  scope: 'tokens:admin',
  bound: BOUNDS.body,
  body: NewToken,
  bodyExample: newExample,
  answers: {
    201: {
      description: 'The token and, this once, its value',
      schema: MintedToken,
      example: { ...example, token: `gk_01k9zq6m3t8v5w2x7y4c1b6d9e_${'0123456789abcdef'.repeat(4)}` },
    },
  },
  errors: ['idempotency_conflict', 'too_large', 'unsupported_media_type'],
})

export const listTokens = operation({
  id: 'listTokens',
  method: 'GET',
  path: '/tokens',
  tag: 'Tokens',
  summary: 'List the tokens that are not revoked',
  description: 'Newest first. A token that can do or reach more than the token that asks is not shown to it.',
  scope: 'tokens:admin',
  bound: BOUNDS.page,
  query: Closed({ ...PageQuery }),
  answers: {
    200: { description: 'A page of tokens', schema: Page(Token), example: { data: [example], nextCursor: null } },
  },
  errors: [],
})

export const readOwnToken = operation({
  id: 'readOwnToken',
  method: 'GET',
  path: '/token',
  tag: 'Tokens',
  summary: 'Read the token that asks',
  description: 'What it can do and reach. Servers that it is for are named here also where it lacks `servers:read`.',
  scope: null,
  bound: BOUNDS.tokenServers,
  answers: {
    200: {
      description: 'The token that asks',
      schema: OwnToken,
      example: {
        id: example.id,
        name: example.name,
        scopes: example.scopes,
        servers: [{ id: example.servers[0], name: 'Castle' }],
        expiresAt: null,
      },
    },
  },
  errors: [],
})

export const revokeToken = operation({
  id: 'revokeToken',
  method: 'DELETE',
  path: '/tokens/{tokenId}',
  tag: 'Tokens',
  summary: 'Revoke a token',
  description: 'Acts at once, also on streams that are open and on links that the token has signed.',
  scope: 'tokens:admin',
  bound: BOUNDS.rows,
  params: Closed({ tokenId: Id }),
  answers: { 204: { description: 'Revoked' } },
  errors: [],
})

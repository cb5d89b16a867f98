import { operation } from './operation.ts'
import { BOUNDS } from './operation-bounds.ts'
import { Closed, Id, Name, Page, PageQuery, type Static, Timestamp, Type } from './schema.ts'
import { NewToken, Token } from './tokens.ts'

const { id, name, scopes, servers, createdBy, createdAt } = Token.properties

export const Invitation = Type.Object({ id, name, scopes, servers, createdBy, createdAt, expiresAt: Timestamp })
export type Invitation = Static<typeof Invitation>

export const NewInvitation = Closed({
  name: Name,
  scopes: NewToken.properties.scopes,
  servers: NewToken.properties.servers,
})
export type NewInvitation = Static<typeof NewInvitation>

export const MadeInvitation = Type.Object({
  ...Invitation.properties,
  url: Type.String({ description: 'The link to give away. Shown this once' }),
})
export type MadeInvitation = Static<typeof MadeInvitation>

const example = {
  id: 'inv_01k9zq6m3t8v5w2x7y4c1b6d9e',
  name: 'Anna',
  scopes: ['servers:read', 'console:read', 'console:write'],
  servers: ['srv_01k9zq6m3t8v5w2x7y4c1b6d9e'],
  createdBy: 'tok_01k9zq000000000000000000a1',
  createdAt: '2026-11-15T00:00:00.000Z',
  expiresAt: '2026-11-16T00:00:00.000Z',
}

export const createInvitation = operation({
  id: 'createInvitation',
  method: 'POST',
  path: '/invitations',
  tag: 'Invitations',
  summary: 'Invite somebody',
  description:
    'The link works once within 24 hours, and then becomes a token of that name, which can do and reach at most what the ' +
    'token that asks can, and expires no later. It stops working when the token that asks is revoked.',
  scope: 'tokens:admin',
  bound: BOUNDS.body,
  body: NewInvitation,
  bodyExample: { name: example.name, scopes: example.scopes, servers: example.servers },
  answers: {
    201: {
      description: 'The invitation and, this once, its link',
      schema: MadeInvitation,
      example: {
        ...example,
        url: 'https://games.example.org/join#invitation=gki_uZ8cQ2mR5tY1wX7vB4nK9pL3sD6fG0hJ8aE2iO5uT1q',
      },
    },
  },
  errors: ['idempotency_conflict', 'quota_exceeded', 'too_large', 'unsupported_media_type'],
})

export const listInvitations = operation({
  id: 'listInvitations',
  method: 'GET',
  path: '/invitations',
  tag: 'Invitations',
  summary: 'List the invitations that can still be used',
  description: 'Newest first. One that offers more than the token that asks has is not shown to it.',
  scope: 'tokens:admin',
  bound: BOUNDS.page,
  query: Closed({ ...PageQuery }),
  answers: {
    200: {
      description: 'A page of invitations',
      schema: Page(Invitation),
      example: { data: [example], nextCursor: null },
    },
  },
  errors: [],
})

export const revokeInvitation = operation({
  id: 'revokeInvitation',
  method: 'DELETE',
  path: '/invitations/{invitationId}',
  tag: 'Invitations',
  summary: 'Take an invitation back',
  description: 'One that was used is a token, and is revoked as such.',
  scope: 'tokens:admin',
  bound: BOUNDS.rows,
  params: Closed({ invitationId: Id }),
  answers: { 204: { description: 'Its link no longer works' } },
  errors: [],
})

export const INVITATION_OPERATIONS = [createInvitation, listInvitations, revokeInvitation] as const

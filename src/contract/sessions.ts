// Sessions of the panel: a token, a sign-in link or an invitation is exchanged for a cookie that JavaScript cannot read, and a
// proof that only pages of the service's own origin have. Each is worth nothing without the other.
import { operation } from './operation.ts'
import { BOUNDS } from './operation-bounds.ts'
import { Closed, Id, Nullable, Page, PageQuery, type Static, Timestamp, Type } from './schema.ts'
import { OwnToken } from './tokens.ts'

const secret = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 256, description }))

export const NewSession = Closed(
  {
    token: secret('The value of a token'),
    link: secret('What follows `#link=` in a sign-in link'),
    invitation: secret('What follows `#invitation=` in the link of an invitation'),
  },
  { minProperties: 1, maxProperties: 1 },
)
export type NewSession = Static<typeof NewSession>

export const SignedIn = Type.Object({
  ...OwnToken.properties,
  session: Nullable(
    Type.Object(
      { id: Id, expiresAt: Timestamp },
      { description: 'Null for a request with a token. It ends earlier where it is not used for 30 days' },
    ),
  ),
})
export type SignedIn = Static<typeof SignedIn>

/** In lowercase, as Node gives it. */
export const SESSION_PROOF_HEADER = 'x-gamekeeper-session'

export const StartedSession = Type.Object({
  ...SignedIn.properties,
  proof: Type.String({
    description:
      'Goes along as the header `X-Gamekeeper-Session` with each request of the session, whose cookie is good for nothing without ' +
      'it. Shown this once',
  }),
})
export type StartedSession = Static<typeof StartedSession>

export const SignInLink = Type.Object({
  url: Type.String({ description: 'Signs in once. The secret is in its fragment, which no server is ever sent' }),
  expiresAt: Timestamp,
})
export type SignInLink = Static<typeof SignInLink>

export const Session = Type.Object({
  id: Id,
  isCurrent: Type.Boolean({ description: 'That of the request itself' }),
  userAgent: Nullable(Type.String({ description: 'Of the browser that signed in, as it calls itself' })),
  ip: Nullable(Type.String({ description: 'Where it signed in from' })),
  createdAt: Timestamp,
  lastUsedAt: Timestamp,
  expiresAt: Timestamp,
})
export type Session = Static<typeof Session>

const example = {
  id: 'tok_01k9zq6m3t8v5w2x7y4c1b6d9e',
  name: 'Anna',
  scopes: ['servers:read', 'console:read', 'console:write'],
  servers: [{ id: 'srv_01k9zq6m3t8v5w2x7y4c1b6d9e', name: 'Castle' }],
  expiresAt: null,
  session: { id: 'ses_01k9zq6m3t8v5w2x7y4c1b6d9e', expiresAt: '2027-05-14T00:00:00.000Z' },
}
const secretExample = 'uZ8cQ2mR5tY1wX7vB4nK9pL3sD6fG0hJ8aE2iO5uT1q'

export const createSession = operation({
  id: 'createSession',
  method: 'POST',
  path: '/session',
  tag: 'Sessions',
  summary: 'Sign in',
  description:
    'Exchanges a token, a sign-in link or an invitation for a session, whose cookie is in `Set-Cookie` and whose `proof` goes ' +
    'along as the header `X-Gamekeeper-Session`. A link and an invitation work once. A session lasts at most 180 days, 30 without use, and ends with its token. A page of another ' +
    'origin is refused with `forbidden`.',
  scope: null,
  isOpen: true,
  bound: BOUNDS.tokenServers,
  body: NewSession,
  bodyExample: { link: `gkl_${secretExample}` },
  answers: { 201: { description: 'Signed in', schema: StartedSession, example: { ...example, proof: secretExample } } },
  errors: ['too_large', 'unsupported_media_type'],
})

export const readSession = operation({
  id: 'readSession',
  method: 'GET',
  path: '/session',
  tag: 'Sessions',
  summary: 'Read who is signed in',
  description: 'As `GET /token`, with the session.',
  scope: null,
  bound: BOUNDS.tokenServers,
  answers: { 200: { description: 'Whose request it is', schema: SignedIn, example } },
  errors: [],
})

export const endSession = operation({
  id: 'endSession',
  method: 'DELETE',
  path: '/session',
  tag: 'Sessions',
  summary: 'Sign out',
  description: 'Ends the session of the request and its streams at once. A request with a token has none to end.',
  scope: null,
  bound: BOUNDS.rows,
  answers: { 204: { description: 'Signed out' } },
  errors: [],
})

export const createSignInLink = operation({
  id: 'createSignInLink',
  method: 'POST',
  path: '/sign-in-links',
  tag: 'Sessions',
  summary: 'Make a link that signs in once',
  description: 'It signs in with the token that asks, once and within 15 minutes.',
  scope: null,
  bound: BOUNDS.rows,
  answers: {
    201: {
      description: 'The link, shown this once',
      schema: SignInLink,
      example: {
        url: `http://127.0.0.1:8080/sign-in#link=gkl_${secretExample}`,
        expiresAt: '2026-11-15T00:15:00.000Z',
      },
    },
  },
  errors: ['idempotency_conflict'],
})

const tag = 'Sessions'
const sessionExample = {
  ...{ id: example.session.id, isCurrent: true, ip: '192.0.2.7', createdAt: '2026-11-15T00:00:00.000Z' },
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0',
  ...{ lastUsedAt: '2026-11-16T20:15:00.000Z', expiresAt: example.session.expiresAt },
}
const sessionPage = {
  200: {
    description: 'A page of sessions',
    schema: Page(Session),
    example: { data: [sessionExample], nextCursor: null },
  },
}
const endedCount = {
  200: {
    description: 'How many have ended',
    schema: Type.Object({ ended: Type.Integer({ minimum: 0 }) }),
    example: { ended: 2 },
  },
}
const ended = { 204: { description: 'It has ended, and so have its streams' } }
const tokenParams = Closed({ tokenId: Id })

export const listSessions = operation({
  id: 'listSessions',
  method: 'GET',
  path: '/sessions',
  tag,
  summary: 'List where one is signed in',
  description: 'The sessions of the token that asks, newest first.',
  scope: null,
  bound: BOUNDS.page,
  query: Closed({ ...PageQuery }),
  answers: sessionPage,
  errors: [],
})

export const endOtherSessions = operation({
  id: 'endOtherSessions',
  method: 'DELETE',
  path: '/sessions',
  tag,
  summary: 'Sign out everywhere else',
  description: 'Ends every session of the token that asks, and their streams, but that of the request.',
  scope: null,
  bound: BOUNDS.page,
  answers: endedCount,
  errors: [],
})

export const endOneSession = operation({
  id: 'endOneSession',
  method: 'DELETE',
  path: '/sessions/{sessionId}',
  tag,
  summary: 'End one session of the token that asks',
  scope: null,
  bound: BOUNDS.rows,
  params: Closed({ sessionId: Id }),
  answers: ended,
  errors: ['not_found'],
})

export const listTokenSessions = operation({
  id: 'listTokenSessions',
  method: 'GET',
  path: '/tokens/{tokenId}/sessions',
  tag,
  summary: 'List where somebody is signed in',
  description: 'The sessions of a token that can do and reach no more than the one that asks, newest first.',
  scope: 'tokens:admin',
  bound: BOUNDS.page,
  params: tokenParams,
  query: Closed({ ...PageQuery }),
  answers: sessionPage,
  errors: [],
})

export const endTokenSessions = operation({
  id: 'endTokenSessions',
  method: 'DELETE',
  path: '/tokens/{tokenId}/sessions',
  tag,
  summary: 'Sign somebody out everywhere',
  description:
    'Ends every session of the token, and their streams, but that of the request. The token stays good: its holder signs in again ' +
    'with its value or a sign-in link; whoever came by an invitation has neither, and needs another.',
  scope: 'tokens:admin',
  bound: BOUNDS.page,
  params: tokenParams,
  answers: endedCount,
  errors: [],
})

export const endTokenSession = operation({
  id: 'endTokenSession',
  method: 'DELETE',
  path: '/tokens/{tokenId}/sessions/{sessionId}',
  tag,
  summary: "End one of somebody's sessions",
  scope: 'tokens:admin',
  bound: BOUNDS.rows,
  params: Closed({ tokenId: Id, sessionId: Id }),
  answers: ended,
  errors: [],
})

export const SESSION_OPERATIONS = [
  createSession,
  readSession,
  endSession,
  createSignInLink,
  ...[listSessions, endOtherSessions, endOneSession],
  ...[listTokenSessions, endTokenSessions, endTokenSession],
] as const

// Sessions of the panel: a token, a sign-in link or an invitation is exchanged for a cookie that JavaScript cannot read, and a
// proof that only pages of the service's own origin have. Each is worth nothing without the other.
import { operation } from './operation.ts'
import { BOUNDS } from './operation-bounds.ts'
import { Closed, Id, Nullable, type Static, Timestamp, Type } from './schema.ts'
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

export const SESSION_OPERATIONS = [createSession, readSession, endSession, createSignInLink] as const

// From a request to the actor behind it, or to a refusal. The order matters: authenticate, then apply the rate limit,
// then check that the server is visible, then that the scope allows it, all before a body is read.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ActivitySource, SOURCES } from '../../contract/activity.ts'
import { fail } from '../../contract/errors.ts'
import { USER_AGENT_MAX_CHARS } from '../../contract/fixed-limits.ts'
import { ID_FORM } from '../../contract/schema.ts'
import { allows, type Scope } from '../../contract/scopes.ts'
import { countHeader } from '../../http/server.ts'
import { networkOf } from '../../kit/networks.ts'
import { type Actor, noSuchServer, sees } from './actor.ts'
import { type Count, createRateLimiter, policyHeader, rateLimitHeaders, standingHeader } from './limits.ts'
import { type IsOwnOrigin, requireOwnPage, type SessionCookies, type SessionCredential } from './session-cookie.ts'

export type Identity = Pick<Actor, 'id' | 'name' | 'scopes' | 'servers' | 'expiresAt' | 'session'>

export interface AuthDeps {
  /** The identity behind the value of a bearer token, if it is good now. */
  identify(token: string): Identity | undefined | Promise<Identity | undefined>
  /** The identity behind a session, if it is good now. */
  identifySession(credential: SessionCredential): Identity | undefined | Promise<Identity | undefined>
  cookies: SessionCookies
  isOwnOrigin: IsOwnOrigin
  /** Called for every refusal of a good token on a server that it sees. */
  recordDenied(actor: Actor, serverId: string, scope: Scope): Promise<void>
  requestsPerMinute: number
}

export interface Auth {
  /** Not a promise where the token is known already, which saves nearly every request a turn (`npm run bench -- api`). */
  authenticate(request: FastifyRequest, reply: FastifyReply): Actor | Promise<Actor>
  /** Who asks for what anybody may ask for: nobody that anything is known of. */
  stranger(request: FastifyRequest): Actor
  /** What the request proves who it is with, in one spelling; only its sender has it. */
  credentialOf(request: FastifyRequest): string
  authorize(actor: Actor, serverId: string | undefined, scope: Scope): undefined | Promise<never>
  /** Lets in who has just said who they are, or counts a failed sign-in. */
  admit(request: FastifyRequest, reply: FastifyReply, identity: Identity | undefined): Actor
  /** Counts a failed sign-in. */
  refuseSignIn(request: FastifyRequest, detail: string): never
}

const FAILED_SIGN_INS_PER_MINUTE = 60
const AN_ID = new RegExp(ID_FORM)
const CHALLENGE = 'Bearer realm="gamekeeper"'
const BEARER = /^Bearer +([\x21-\x7e]+)$/i

/** The token in an Authorization header. */
const bearerOf = (header: string): string | undefined => BEARER.exec(header)?.[1]

export function createAuth(deps: AuthDeps): Auth {
  const requests = createRateLimiter(deps.requestsPerMinute)
  const policy = policyHeader('token', deps.requestsPerMinute)
  const failures = createRateLimiter(FAILED_SIGN_INS_PER_MINUTE)

  function refuse(request: FastifyRequest, detail: string, tokenSent: boolean): never {
    const count = failures.take(networkOf(request.ip))
    if (!count.allowed) throw tooMany('sign-in', count, 'Too many failed sign-ins from this address.')
    const challenge = tokenSent ? `${CHALLENGE}, error="invalid_token"` : CHALLENGE
    throw fail('unauthenticated', { detail, headers: { 'www-authenticate': challenge } })
  }

  function admit(request: FastifyRequest, reply: FastifyReply, identity: Identity | undefined): Actor {
    if (!identity) refuse(request, 'The token is unknown, expired or revoked.', true)
    const count = requests.take(identity.id)
    if (count.limit > 0) reply.header('ratelimit-policy', policy).header('ratelimit', standingHeader('token', count))
    if (!count.allowed) throw tooMany('token', count, 'Too many requests with this token.')
    return actorOf(request, identity)
  }

  function bySession(request: FastifyRequest, reply: FastifyReply): Actor | Promise<Actor> {
    const credential = deps.cookies.read(request)
    if (credential === undefined) refuse(request, missingToken(request), false)
    requireOwnPage(request, deps.isOwnOrigin)
    const enter = (identity: Identity | undefined) => {
      if (!identity) refuse(request, 'The session has ended. Sign in again.', false)
      const actor = admit(request, reply, identity)
      actor.session = identity.session
      // An event stream or a download that the browser asks for by itself cannot say so.
      if (request.headers['x-gamekeeper-client'] === undefined) actor.source = 'panel'
      return actor
    }
    const identity = deps.identifySession(credential)
    return identity instanceof Promise ? identity.then(enter) : enter(identity)
  }

  async function deny(actor: Actor, serverId: string | undefined, scope: Scope): Promise<never> {
    if (serverId !== undefined && AN_ID.test(serverId)) await deps.recordDenied(actor, serverId, scope)
    throw fail('forbidden', `The token lacks the scope ${scope}.`)
  }

  return {
    authenticate(request, reply) {
      const header = request.headers.authorization
      if (header === undefined) return bySession(request, reply)
      if (countHeader(request.raw, 'authorization') > 1) {
        throw fail('invalid_request', 'The request has more than one Authorization header.')
      }
      const token = bearerOf(header)
      if (token === undefined) refuse(request, 'The Authorization header must be "Bearer" and a token.', true)
      const identity = deps.identify(token)
      if (identity instanceof Promise) return identity.then((found) => admit(request, reply, found))
      return admit(request, reply, identity)
    },

    admit,
    stranger: (request) => actorOf(request, { ...STRANGER, id: `anybody at ${networkOf(request.ip)}` }),
    credentialOf: (request) =>
      bearerOf(request.headers.authorization ?? '')?.toLowerCase() ?? deps.cookies.read(request)?.proof ?? '',
    refuseSignIn: (request, detail) => refuse(request, detail, false),

    authorize(actor, serverId, scope) {
      if (serverId !== undefined && !sees(actor, serverId)) throw noSuchServer()
      return allows(actor.scopes, scope) ? undefined : deny(actor, serverId, scope)
    },
  }
}

function missingToken(request: FastifyRequest): string {
  const query = request.query as Record<string, unknown>
  const inQuery = 'token' in query || 'access_token' in query || Object.values(query).some(looksLikeToken)
  return inQuery
    ? 'Tokens are never accepted in a query string. Send the header "Authorization: Bearer <token>".'
    : 'The request has no token. Send the header "Authorization: Bearer <token>".'
}

const looksLikeToken = (value: unknown) => typeof value === 'string' && value.startsWith('gk_')

const STRANGER: Omit<Identity, 'id'> = { name: 'Somebody', scopes: [], servers: new Set(), expiresAt: null }

function tooMany(policy: string, count: Count, detail: string) {
  const headers = { ...rateLimitHeaders(policy, count), 'retry-after': String(count.resetSeconds) }
  return fail('rate_limited', { detail, headers })
}

export function actorOf(request: FastifyRequest, identity: Identity): Actor {
  return {
    type: 'token',
    id: identity.id,
    name: identity.name,
    scopes: identity.scopes,
    servers: identity.servers,
    expiresAt: identity.expiresAt,
    source: sourceOf(request.headers['x-gamekeeper-client']),
    ip: request.ip,
    userAgent: request.headers['user-agent']?.slice(0, USER_AGENT_MAX_CHARS) ?? null,
    requestId: request.id,
  }
}

const CLIENT_SOURCES: ReadonlySet<string> = new Set(SOURCES.slice(0, SOURCES.indexOf('link')))

function sourceOf(client: unknown): ActivitySource {
  return typeof client === 'string' && CLIENT_SOURCES.has(client) ? (client as ActivitySource) : 'api'
}

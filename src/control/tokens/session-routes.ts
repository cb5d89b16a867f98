import type { FastifyReply, FastifyRequest } from 'fastify'
import { createInvitation, listInvitations, revokeInvitation } from '../../contract/invitations.ts'
import {
  createSession,
  createSignInLink,
  endOneSession,
  endOtherSessions,
  endSession,
  endTokenSession,
  endTokenSessions,
  listSessions,
  listTokenSessions,
  type NewSession,
  readSession,
  type SignedIn,
} from '../../contract/sessions.ts'
import { iso } from '../../kit/time.ts'
import type { Actor } from '../http/actor.ts'
import { actorOf, type Identity } from '../http/auth.ts'
import { type Api, serve } from '../http/route.ts'
import { type IsOwnOrigin, refuseForeignPage, type SessionCookies } from '../http/session-cookie.ts'
import type { Invitations } from './invitations.ts'
import type { Tokens } from './service.ts'
import type { Sessions } from './sessions.ts'
import type { SignedInAs, SignIn } from './sign-in.ts'

interface SessionDeps {
  tokens: Tokens
  sessions: Sessions
  signIn: SignIn
  invitations: Invitations
  cookies: SessionCookies
  isOwnOrigin: IsOwnOrigin
}

const SPENT_LINK = 'The link is unknown, has expired or was used already. Ask for another.'

export function sessionRoutes(api: Api, deps: SessionDeps): void {
  const { tokens, sessions, signIn, invitations, cookies, isOwnOrigin } = deps
  const { auth, baseUrlOf } = api

  async function enter(request: FastifyRequest, reply: FastifyReply, body: NewSession): Promise<SignedInAs> {
    const replaced = await replacedBy(request)
    if (body.token !== undefined) {
      const actor = auth.admit(request, reply, await tokens.identify(body.token))
      return signIn.withToken(actor, replaced)
    }
    const actorFor = (identity: Identity) => actorOf(request, identity)
    const entered =
      body.link === undefined
        ? await signIn.withInvitation(body.invitation ?? '', actorFor, replaced)
        : await signIn.withLink(body.link, actorFor, replaced)
    return entered ?? auth.refuseSignIn(request, SPENT_LINK)
  }

  /** The session that the same browser has, which ends with the sign-in. */
  async function replacedBy(request: FastifyRequest): Promise<string | undefined> {
    const credential = cookies.read(request)
    return credential && (await sessions.identify(credential))?.session?.id
  }

  async function describe(actor: Actor, session: { id: string; endsAt: number } | undefined): Promise<SignedIn> {
    const own = await tokens.readOwn(actor)
    return { ...own, session: session ? { id: session.id, expiresAt: iso(session.endsAt) } : null }
  }

  serve(api, createSession, async ({ request, reply, body }) => {
    refuseForeignPage(request, isOwnOrigin)
    const { actor, started } = await enter(request, reply, body)
    const maxAgeSeconds = Math.ceil((started.endsAt - Date.now()) / 1000)
    reply.header('set-cookie', cookies.write(request, started.value, maxAgeSeconds))
    return { ...(await describe(actor, started)), proof: started.proof }
  })
  serve(api, readSession, ({ actor }) => describe(actor, actor.session))
  serve(api, endSession, async ({ actor, request, reply }) => {
    await sessions.end(actor)
    if (actor.session) reply.header('set-cookie', cookies.clear(request))
    return undefined
  })
  serve(api, listSessions, ({ actor, query }) => sessions.list(actor, actor.id, query))
  serve(api, endOtherSessions, async ({ actor }) => ({ ended: await sessions.endOthers(actor, actor.id) }))
  serve(api, endOneSession, async ({ actor, params }) => {
    await sessions.endOne(actor, actor.id, params.sessionId)
    return undefined
  })
  serve(api, listTokenSessions, async ({ actor, params, query }) => {
    await tokens.requireVisible(actor, params.tokenId)
    return sessions.list(actor, params.tokenId, query)
  })
  serve(api, endTokenSessions, async ({ actor, params }) => {
    await tokens.requireVisible(actor, params.tokenId)
    return { ended: await sessions.endOthers(actor, params.tokenId) }
  })
  serve(api, endTokenSession, async ({ actor, params }) => {
    await tokens.requireVisible(actor, params.tokenId)
    await sessions.endOne(actor, params.tokenId, params.sessionId)
    return undefined
  })
  serve(api, createSignInLink, ({ actor, request }) => signIn.createLink(actor, baseUrlOf(request)))
  serve(api, createInvitation, ({ actor, request, body }) => invitations.create(actor, body, baseUrlOf(request)))
  serve(api, listInvitations, ({ actor, query }) => invitations.list(actor, query))
  serve(api, revokeInvitation, async ({ actor, params }) => {
    await invitations.revoke(actor, params.invitationId)
    return undefined
  })
}

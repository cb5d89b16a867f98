import {
  createInvitation,
  type Invitation,
  listInvitations,
  type NewInvitation,
  revokeInvitation,
} from '../contract/invitations.ts'
import type { QueryOf } from '../contract/operation.ts'
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
  type Session,
} from '../contract/sessions.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export type InvitationQuery = QueryOf<typeof listInvitations>
export type SessionQuery = QueryOf<typeof listSessions>

/** For a page in a browser, which keeps the cookie by itself: its client has no token, and `sessionProof` as an option. */
export function createSessionApi(transport: Transport) {
  return {
    /** Signs in with a token, a sign-in link or an invitation: exactly one of them. */
    create: transport.method(createSession, (body: NewSession, options: CallOptions = {}) => ({ body, ...options })),
    /** Who is signed in. */
    read: transport.method(readSession, (options: CallOptions = {}) => options),
    /** Signs out. */
    end: transport.method(endSession, (options: CallOptions = {}) => options),
    /** A link that signs in once, with the token of this client or session. */
    createLink: transport.method(createSignInLink, (options: CallOptions = {}) => options),
  }
}

/** Where one is signed in, and where somebody else is: by the token that this client or session has, or by another. */
export function createSessionsApi(transport: Transport) {
  const list = transport.method(listSessions, (query: SessionQuery = {}, options: CallOptions = {}) => ({
    query,
    ...options,
  }))
  const listOf = transport.method(
    listTokenSessions,
    (tokenId: string, query: SessionQuery = {}, options: CallOptions = {}) => ({
      params: { tokenId },
      query,
      ...options,
    }),
  )
  return {
    /** One page, newest first. */
    list,
    all: (query: SessionQuery = {}, options: CallOptions = {}): AsyncGenerator<Session, void, undefined> =>
      itemsOf((pageQuery: SessionQuery) => list(pageQuery, options), query),
    end: transport.method(endOneSession, (sessionId: string, options: CallOptions = {}) => ({
      params: { sessionId },
      ...options,
    })),
    /** All but that of this client. */
    endOthers: transport.method(endOtherSessions, (options: CallOptions = {}) => options),
    listOf,
    allOf: (
      tokenId: string,
      query: SessionQuery = {},
      options: CallOptions = {},
    ): AsyncGenerator<Session, void, undefined> =>
      itemsOf((pageQuery: SessionQuery) => listOf(tokenId, pageQuery, options), query),
    endOf: transport.method(endTokenSession, (tokenId: string, sessionId: string, options: CallOptions = {}) => ({
      params: { tokenId, sessionId },
      ...options,
    })),
    endAllOf: transport.method(endTokenSessions, (tokenId: string, options: CallOptions = {}) => ({
      params: { tokenId },
      ...options,
    })),
  }
}

export function createInvitationsApi(transport: Transport) {
  const list = transport.method(listInvitations, (query: InvitationQuery = {}, options: CallOptions = {}) => ({
    query,
    ...options,
  }))
  return {
    /** The link to give away is in the answer as `url`, this once. */
    create: transport.method(createInvitation, (body: NewInvitation, options: CallOptions = {}) => ({
      body,
      ...options,
    })),
    /** One page of those that can still be used, newest first. */
    list,
    all: (query: InvitationQuery = {}, options: CallOptions = {}): AsyncGenerator<Invitation, void, undefined> =>
      itemsOf((pageQuery: InvitationQuery) => list(pageQuery, options), query),
    revoke: transport.method(revokeInvitation, (invitationId: string, options: CallOptions = {}) => ({
      params: { invitationId },
      ...options,
    })),
  }
}

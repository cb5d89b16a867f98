// Signing in: with a token, with a link that works once, or with an invitation, which becomes a token.
import { fail } from '../../contract/errors.ts'
import { SIGN_IN_LINK_MS, SIGN_IN_LINKS_MAX } from '../../contract/fixed-limits.ts'
import type { SignInLink } from '../../contract/sessions.ts'
import { iso } from '../../kit/time.ts'
import type { Db } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, SYSTEM } from '../http/actor.ts'
import type { Identity } from '../http/auth.ts'
import type { Invitations } from './invitations.ts'
import { identityOf, reachOf } from './service.ts'
import { insertLink, takeLink } from './session-store.ts'
import { newSecret, type Sessions, type StartedSession } from './sessions.ts'
import { lockToken } from './store.ts'
import { hashOfSecret } from './token-cache.ts'

export interface SignedInAs {
  actor: Actor
  started: StartedSession
}

/** Who signs in, once it is known, with the rest of what the request says of them. */
export type ActorFor = (identity: Identity) => Actor

export interface SignIn {
  withToken(actor: Actor, replaced: string | undefined): Promise<SignedInAs>
  /** Undefined where it is unknown, was used or has expired. */
  withLink(value: string, actorFor: ActorFor, replaced: string | undefined): Promise<SignedInAs | undefined>
  withInvitation(value: string, actorFor: ActorFor, replaced: string | undefined): Promise<SignedInAs | undefined>
  /** A link that signs in once with the actor's own token. */
  createLink(actor: Actor, baseUrl: string): Promise<SignInLink>
  /** The same for whoever is at the machine itself. */
  createOwnersLink(tokenId: string, baseUrl: string): Promise<SignInLink>
}

const LINK_PREFIX = 'gkl_'

export function createSignIn(deps: {
  db: Db
  sessions: Sessions
  invitations: Invitations
  clock: { now(): number }
}): SignIn {
  const { db, sessions, invitations, clock } = deps

  async function createLink(actor: Actor, tokenId: string, baseUrl: string): Promise<SignInLink> {
    const value = `${LINK_PREFIX}${newSecret()}`
    return transact(db, actor, async (trx) => {
      const now = clock.now()
      const row = { hash: hashOfSecret(value), token_id: tokenId, created_at: now, expires_at: now + SIGN_IN_LINK_MS }
      await insertLink(trx, row, SIGN_IN_LINKS_MAX)
      return { url: `${baseUrl}/sign-in#link=${value}`, expiresAt: iso(row.expires_at) }
    })
  }

  return {
    withToken: (actor, replaced) =>
      transact(db, {}, async (trx) => {
        if (!(await lockToken(trx, actor.id))) throw fail('unauthenticated', 'The token was revoked.')
        return { actor, started: await sessions.start(trx, actor, 'token', replaced) }
      }),

    withLink: (value, actorFor, replaced) =>
      transact(db, {}, async (trx) => {
        const link = await takeLink(trx, hashOfSecret(value), clock.now())
        const row = link ? await lockToken(trx, link.token_id) : undefined
        if (!row) return undefined
        const { expiresAt } = reachOf(row)
        if (expiresAt !== null && expiresAt <= clock.now()) return undefined
        const actor = actorFor(identityOf(row))
        return { actor, started: await sessions.start(trx, actor, 'link', replaced) }
      }),

    withInvitation: (value, actorFor, replaced) =>
      transact(db, {}, async (trx) => {
        const actor = await invitations.redeem(trx, value, actorFor)
        return actor && { actor, started: await sessions.start(trx, actor, 'invitation', replaced) }
      }),

    createLink: (actor, baseUrl) => createLink(actor, actor.id, baseUrl),
    createOwnersLink: (tokenId, baseUrl) => createLink(SYSTEM, tokenId, baseUrl),
  }
}

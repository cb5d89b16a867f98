// Invitations: a link that works once and becomes a token of its own, never wider than the token that made it.
import { fail } from '../../contract/errors.ts'
import { INVITATION_MS, INVITATIONS_MAX } from '../../contract/fixed-limits.ts'
import type { Invitation, MadeInvitation, NewInvitation } from '../../contract/invitations.ts'
import type { Page } from '../../contract/schema.ts'
import { newId } from '../../kit/ids.ts'
import { iso } from '../../kit/time.ts'
import type { Activity } from '../activity/service.ts'
import { countRows } from '../db/count-rows.ts'
import type { Db, InvitationRow, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { type Cursors, pageOfVisible, pageRequest } from '../http/paging.ts'
import { type Reach, within } from './reach.ts'
import { identityOf, presentGrant, reachOf, requireGrantable, tokenRow } from './service.ts'
import { findInvitation, insertInvitation, listInvitationRows, takeInvitation } from './session-store.ts'
import { newSecret } from './sessions.ts'
import type { ActorFor } from './sign-in.ts'
import { insertToken, lockToken } from './store.ts'
import { hashOfSecret } from './token-cache.ts'

export interface Invitations {
  create(actor: Actor, request: NewInvitation, baseUrl: string): Promise<MadeInvitation>
  list(actor: Actor, query: { limit?: number; cursor?: string }): Promise<Page<Invitation>>
  revoke(actor: Actor, invitationId: string): Promise<void>
  /** The new token as the actor; undefined where it is unknown, was used, taken back, or has expired. */
  redeem(trx: Trx, value: string, actorFor: ActorFor): Promise<Actor | undefined>
}

const LIST = 'invitations'
const PREFIX = 'gki_'

export function createInvitations(deps: {
  db: Db
  activity: Activity
  cursors: Cursors
  clock: { now(): number }
}): Invitations {
  const { db, activity, cursors, clock } = deps

  return {
    async create(actor, request, baseUrl) {
      const { name, scopes, servers } = request
      await requireGrantable(db, actor, { scopes, servers, expiresAt: actor.expiresAt })
      const value = `${PREFIX}${newSecret()}`
      return transact(db, actor, async (trx) => {
        const now = clock.now()
        // Locked, so that they are counted one after the other.
        if (!(await lockToken(trx, actor.id))) throw fail('unauthenticated', 'The token was revoked.')
        await requireRoom(trx, actor.id, now)
        const row: InvitationRow = {
          id: newId('inv', now),
          hash: hashOfSecret(value),
          name,
          scopes: JSON.stringify(scopes),
          servers: JSON.stringify(servers),
          created_by: actor.id,
          created_at: now,
          expires_at: now + INVITATION_MS,
        }
        await insertInvitation(trx, row)
        const properties = { invitationId: row.id, name, scopes, servers }
        await activity.record(trx, actor, 'invitation.created', null, properties)
        return { ...present(row), url: `${baseUrl}/join#invitation=${value}` }
      })
    },

    async list(actor, query) {
      return pageOfVisible(
        pageRequest(cursors, LIST, query),
        (before, limit) => listInvitationRows(db, clock.now(), before, limit),
        (row) => within(actor, offerOf(row)),
        present,
        ({ id }) => cursors.encode(LIST, [id]),
      )
    },

    async revoke(actor, invitationId) {
      await transact(db, actor, async (trx) => {
        const row = await findInvitation(trx, invitationId, clock.now())
        const isVisible = row && within(actor, offerOf(row))
        if (!isVisible || !(await takeInvitation(trx, { id: invitationId }, clock.now())))
          throw fail('not_found', 'No such invitation, or this token cannot see it.')
        await activity.record(trx, actor, 'invitation.revoked', null, { invitationId, name: row.name })
      })
    },

    async redeem(trx, value, actorFor) {
      const now = clock.now()
      const invitation = await takeInvitation(trx, { hash: hashOfSecret(value) }, now)
      const inviter = invitation ? await lockToken(trx, invitation.created_by) : undefined
      if (!invitation || !inviter || (inviter.expires_at !== null && inviter.expires_at <= now)) return undefined
      const reach = { ...offerOf(invitation), expiresAt: inviter.expires_at, name: invitation.name }
      // Nobody has its secret: it is used by sessions only.
      const token = tokenRow(newId('tok', now), newSecret(), reach, inviter.id, now)
      await insertToken(trx, token)
      const actor = actorFor(identityOf(token))
      const { name, scopes, servers } = reach
      const properties = { invitationId: invitation.id, tokenId: token.id, name, scopes, servers }
      await activity.record(trx, actor, 'invitation.redeemed', null, properties)
      return actor
    },
  }
}

async function requireRoom(trx: Trx, tokenId: string, now: number): Promise<void> {
  const open = trx.selectFrom('invitations').where('created_by', '=', tokenId).where('expires_at', '>', now)
  if ((await countRows(open)) < INVITATIONS_MAX) return
  throw fail('quota_exceeded', `This token has ${INVITATIONS_MAX} invitations that were not used; take some back.`)
}

const offerOf = ({ scopes, servers }: InvitationRow): Reach => reachOf({ scopes, servers, expires_at: null })

const present = (row: InvitationRow): Invitation => ({
  ...presentGrant(row),
  createdBy: row.created_by,
  expiresAt: iso(row.expires_at),
})

import type { Db, InvitationRow, SessionRow, SignInLinkRow, Trx } from '../db/tables.ts'

export function findSession(db: Db, proofHash: string): Promise<SessionRow | undefined> {
  return db.selectFrom('sessions').selectAll().where('proof_hash', '=', proofHash).executeTakeFirst()
}

/** Of one token only the newest are kept. Returns those that had to go. */
export async function insertSession(trx: Trx, row: SessionRow, keep: number): Promise<SessionRow[]> {
  await trx.insertInto('sessions').values(row).execute()
  const ofToken = trx.selectFrom('sessions').select('id').where('token_id', '=', row.token_id)
  const oldest = await ofToken.orderBy('id', 'desc').offset(keep).limit(1).executeTakeFirst()
  if (!oldest) return []
  const surplus = trx.deleteFrom('sessions').where('token_id', '=', row.token_id).where('id', '<=', oldest.id)
  return surplus.returningAll().execute()
}

/** Newest first, without those whose time is over. */
export function listSessionRows(
  db: Db,
  of: { tokenId: string; now: number; idleMs: number },
  before: string | null,
  limit: number,
): Promise<SessionRow[]> {
  const ofToken = db.selectFrom('sessions').selectAll().where('token_id', '=', of.tokenId)
  const live = ofToken.where('ends_at', '>', of.now).where('last_used_at', '>', of.now - of.idleMs)
  const page = before === null ? live : live.where('id', '<', before)
  return page.orderBy('id', 'desc').limit(limit).execute()
}

/** In the order in which whoever changes several of them goes through them. */
export async function sessionIdsOf(trx: Trx, tokenId: string): Promise<string[]> {
  const rows = await trx.selectFrom('sessions').select('id').where('token_id', '=', tokenId).orderBy('id').execute()
  return rows.map(({ id }) => id)
}

export async function deleteSession(trx: Trx, id: string): Promise<SessionRow | undefined> {
  return trx.deleteFrom('sessions').where('id', '=', id).returningAll().executeTakeFirst()
}

/** Undefined where the token has no such session. */
export async function deleteSessionOf(trx: Trx, tokenId: string, id: string): Promise<SessionRow | undefined> {
  const one = trx.deleteFrom('sessions').where('id', '=', id).where('token_id', '=', tokenId)
  return one.returningAll().executeTakeFirst()
}

export async function markSessionUsed(db: Db, id: string, at: number): Promise<void> {
  await db.updateTable('sessions').set({ last_used_at: at }).where('id', '=', id).execute()
}

export async function insertLink(trx: Trx, row: SignInLinkRow, keep: number): Promise<void> {
  await trx.insertInto('sign_in_links').values(row).execute()
  const ofToken = trx.selectFrom('sign_in_links').select('created_at').where('token_id', '=', row.token_id)
  const oldest = await ofToken.orderBy('created_at', 'desc').offset(keep).limit(1).executeTakeFirst()
  if (!oldest) return
  const surplus = trx.deleteFrom('sign_in_links').where('token_id', '=', row.token_id)
  await surplus.where('created_at', '<=', oldest.created_at).execute()
}

/** Of two who use it at once only one gets it. */
export function takeLink(trx: Trx, hash: string, now: number): Promise<SignInLinkRow | undefined> {
  const good = trx.deleteFrom('sign_in_links').where('hash', '=', hash).where('expires_at', '>', now)
  return good.returningAll().executeTakeFirst()
}

/** What can no longer be used by anybody. */
export async function purgeSessions(db: Db, now: number, idleMs: number): Promise<void> {
  const live = db.selectFrom('tokens').select('id').where('revoked_at', 'is', null)
  await db
    .deleteFrom('sessions')
    .where(({ or, eb }) =>
      or([eb('ends_at', '<=', now), eb('last_used_at', '<=', now - idleMs), eb('token_id', 'not in', live)]),
    )
    .execute()
  await db.deleteFrom('sign_in_links').where('expires_at', '<=', now).execute()
  await db
    .deleteFrom('invitations')
    .where(({ or, eb }) => or([eb('expires_at', '<=', now), eb('created_by', 'not in', live)]))
    .execute()
}

export async function insertInvitation(trx: Trx, row: InvitationRow): Promise<void> {
  await trx.insertInto('invitations').values(row).execute()
}

export function findInvitation(db: Db, id: string, now: number): Promise<InvitationRow | undefined> {
  return db.selectFrom('invitations').selectAll().where('id', '=', id).where('expires_at', '>', now).executeTakeFirst()
}

/** Newest first, without those that can no longer be used. */
export function listInvitationRows(
  db: Db,
  now: number,
  before: string | null,
  limit: number,
): Promise<InvitationRow[]> {
  const live = db.selectFrom('tokens').select('id').where('revoked_at', 'is', null)
  let query = db.selectFrom('invitations').selectAll().where('expires_at', '>', now).where('created_by', 'in', live)
  if (before !== null) query = query.where('id', '<', before)
  return query.orderBy('id', 'desc').limit(limit).execute()
}

/** Of two who use it at once, or use it and take it back, only one gets it. */
export function takeInvitation(
  trx: Trx,
  by: { id: string } | { hash: string },
  now: number,
): Promise<InvitationRow | undefined> {
  const good = trx.deleteFrom('invitations').where('expires_at', '>', now)
  const one = 'id' in by ? good.where('id', '=', by.id) : good.where('hash', '=', by.hash)
  return one.returningAll().executeTakeFirst()
}

// Sessions: what the panel has in place of a token. A session is a cookie and a proof that stand for its token and end with it.
// Those in use are cached as tokens are: most requests are authenticated without a database query.
import { randomBytes } from 'node:crypto'
import { SESSION_IDLE_MS, SESSION_MAX_MS, SESSIONS_MAX } from '../../contract/fixed-limits.ts'
import { newId } from '../../kit/ids.ts'
import type { Activity } from '../activity/service.ts'
import type { Db, SessionRow, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import type { Identity } from '../http/auth.ts'
import type { SessionCredential } from '../http/session-cookie.ts'
import type { Streams } from '../http/streams/open-streams.ts'
import type { Tokens } from './service.ts'
import { deleteSession, findSession, insertSession, markSessionUsed, purgeSessions } from './session-store.ts'
import { hashOfSecret } from './token-cache.ts'

export interface StartedSession {
  /** For the cookie, this once. */
  value: string
  /** For the page, this once. */
  proof: string
  id: string
  endsAt: number
}

export interface Sessions {
  identify(credential: SessionCredential): Identity | undefined | Promise<Identity | undefined>
  /** Within the transaction of whatever entitles to it. `replaced` is the id of one that the same browser has. */
  start(trx: Trx, actor: Actor, by: SignInMethod, replaced: string | undefined): Promise<StartedSession>
  /** Ends that of the request, and its streams. */
  end(actor: Actor): Promise<void>
  flushUse(): Promise<void>
  /** Removes what can no longer be used: sessions, sign-in links and invitations. */
  purge(): Promise<void>
}

export type SignInMethod = 'token' | 'link' | 'invitation'

interface CachedSession {
  id: string
  cookieHash: string
  tokenId: string
  endsAt: number
  lastUsedAt: number
}

const SECRET_FORM = /^[A-Za-z0-9_-]{43}$/
const CACHED_MAX = 10_000

export const newSecret = () => randomBytes(32).toString('base64url')

export function createSessions(deps: {
  db: Db
  activity: Activity
  tokens: Pick<Tokens, 'find'>
  streams: Streams
  clock: { now(): number }
}): Sessions {
  const { db, activity, tokens, streams, clock } = deps
  /** By the hash of the proof. */
  const cached = new Map<string, CachedSession>()
  const used = new Map<string, number>()
  /** A row that was read before one was ended is not cached after. */
  let endings = 0

  function accept(
    session: CachedSession,
    cookies: readonly string[],
  ): Identity | undefined | Promise<Identity | undefined> {
    const now = clock.now()
    if (!cookies.some((value) => hashOfSecret(value) === session.cookieHash)) return undefined
    if (session.endsAt <= now || session.lastUsedAt + SESSION_IDLE_MS <= now) return undefined
    const withSession = (identity: Identity | undefined): Identity | undefined => {
      if (!identity) return undefined
      session.lastUsedAt = now
      used.set(session.id, now)
      return { ...identity, session: { id: session.id, endsAt: session.endsAt } }
    }
    const identity = tokens.find(session.tokenId)
    return identity instanceof Promise ? identity.then(withSession) : withSession(identity)
  }

  async function load(proofHash: string, cookies: readonly string[]): Promise<Identity | undefined> {
    const before = endings
    const row = await findSession(db, proofHash)
    if (!row) return undefined
    const lastUsedAt = used.get(row.id) ?? row.last_used_at
    const session = { id: row.id, cookieHash: row.hash, tokenId: row.token_id, endsAt: row.ends_at, lastUsedAt }
    if (before === endings) {
      if (cached.size >= CACHED_MAX) cached.clear()
      cached.set(proofHash, session)
    }
    return accept(session, cookies)
  }

  function forget({ id, proof_hash }: SessionRow): void {
    endings++
    cached.delete(proof_hash)
    used.delete(id)
    streams.endForSession(id)
  }

  async function start(
    trx: Trx,
    actor: Actor,
    by: SignInMethod,
    replaced: string | undefined,
  ): Promise<StartedSession> {
    const now = clock.now()
    const [value, proof] = [newSecret(), newSecret()]
    const session = { id: newId('ses', now), endsAt: now + SESSION_MAX_MS }
    const hashes = { hash: hashOfSecret(value), proof_hash: hashOfSecret(proof) }
    const times = { created_at: now, last_used_at: now, ends_at: session.endsAt }
    const surplus = await insertSession(trx, { id: session.id, ...hashes, token_id: actor.id, ...times }, SESSIONS_MAX)
    const old = replaced === undefined ? undefined : await deleteSession(trx, replaced)
    onCommit(trx, () => {
      for (const gone of old ? [...surplus, old] : surplus) forget(gone)
    })
    await activity.record(trx, actor, 'session.started', null, { sessionId: session.id, by })
    return { value, proof, ...session }
  }

  return {
    identify({ cookies, proof }) {
      if (!SECRET_FORM.test(proof)) return undefined
      const proofHash = hashOfSecret(proof)
      const session = cached.get(proofHash)
      return session ? accept(session, cookies) : load(proofHash, cookies)
    },

    start,

    async end(actor) {
      const { session } = actor
      if (!session) return
      await transact(db, actor, async (trx) => {
        const row = await deleteSession(trx, session.id)
        if (!row) return
        await activity.record(trx, actor, 'session.ended', null, { sessionId: session.id })
        onCommit(trx, () => forget(row))
      }).catch((error: unknown) => {
        // It may have been committed all the same: from now on the database is asked.
        endings++
        for (const [proofHash, { id }] of cached) if (id === session.id) cached.delete(proofHash)
        streams.endForSession(session.id)
        throw error
      })
    },

    async flushUse() {
      const uses = [...used]
      used.clear()
      if (uses.length === 0) return
      await db.transaction().execute(async (trx) => {
        for (const [id, at] of uses) await markSessionUsed(trx, id, at)
      })
    },

    purge: () => purgeSessions(db, clock.now(), SESSION_IDLE_MS),
  }
}

// Sessions: what the panel has in place of a token. A session is a cookie and a proof that stand for its token and end with it.
// Those in use are cached as tokens are: most requests are authenticated without a database query.
import { randomBytes } from 'node:crypto'
import { fail } from '../../contract/errors.ts'
import { SESSION_IDLE_MS, SESSION_MAX_MS, SESSIONS_MAX } from '../../contract/fixed-limits.ts'
import type { Page } from '../../contract/schema.ts'
import type { Session } from '../../contract/sessions.ts'
import { newId } from '../../kit/ids.ts'
import { iso } from '../../kit/time.ts'
import type { Activity } from '../activity/service.ts'
import type { Db, SessionRow, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import type { Identity } from '../http/auth.ts'
import { type Cursors, pageOf, pageRequest } from '../http/paging.ts'
import type { SessionCredential } from '../http/session-cookie.ts'
import type { Streams } from '../http/streams/open-streams.ts'
import type { Tokens } from './service.ts'
import {
  deleteSession,
  deleteSessionOf,
  findSession,
  insertSession,
  listSessionRows,
  markSessionUsed,
  purgeSessions,
  sessionIdsOf,
} from './session-store.ts'
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
  /** Those of a token that the actor has or sees, newest first. */
  list(actor: Actor, tokenId: string, query: { limit?: number; cursor?: string }): Promise<Page<Session>>
  /** Ends one of them, and its streams. */
  endOne(actor: Actor, tokenId: string, sessionId: string): Promise<void>
  /** Ends all of them but that of the request. Resolves with how many there were. */
  endOthers(actor: Actor, tokenId: string): Promise<number>
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
  cursors: Cursors
  clock: { now(): number }
}): Sessions {
  const { db, activity, tokens, streams, cursors, clock } = deps
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
    const place = { user_agent: actor.userAgent, ip: actor.ip }
    const row = { id: session.id, ...hashes, token_id: actor.id, ...times, ...place }
    const surplus = await insertSession(trx, row, SESSIONS_MAX)
    const old = replaced === undefined ? undefined : await deleteSession(trx, replaced)
    onCommit(trx, () => {
      for (const gone of old ? [...surplus, old] : surplus) forget(gone)
    })
    await activity.record(trx, actor, 'session.started', null, { sessionId: session.id, by })
    return { value, proof, ...session }
  }

  /** One after the other and each with its entry, in one transaction. Answers how many of them there still were. */
  async function endThose(actor: Actor, tokenId: string, choose: (trx: Trx) => Promise<string[]>): Promise<number> {
    let ending: SessionRow[] = []
    const forgetThem = () => {
      for (const row of ending) forget(row)
    }
    return transact(db, actor, async (trx) => {
      ending = []
      for (const id of await choose(trx)) {
        const row = await deleteSessionOf(trx, tokenId, id)
        if (!row) continue
        ending.push(row)
        const whose = tokenId === actor.id ? {} : { tokenId }
        await activity.record(trx, actor, 'session.ended', null, { sessionId: id, ...whose })
      }
      onCommit(trx, forgetThem)
      return ending.length
    }).catch((error: unknown) => {
      // It may have been committed all the same: from now on the database is asked.
      forgetThem()
      throw error
    })
  }

  function present(row: SessionRow, actor: Actor): Session {
    const lastUsedAt = Math.max(row.last_used_at, used.get(row.id) ?? 0, cached.get(row.proof_hash)?.lastUsedAt ?? 0)
    return {
      id: row.id,
      isCurrent: row.id === actor.session?.id,
      userAgent: row.user_agent,
      ip: row.ip,
      createdAt: iso(row.created_at),
      lastUsedAt: iso(lastUsedAt),
      expiresAt: iso(row.ends_at),
    }
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
      if (session) await endThose(actor, actor.id, async () => [session.id])
    },

    async list(actor, tokenId, query) {
      const listName = `sessions ${tokenId}`
      const request = pageRequest(cursors, listName, query)
      const before = request.after ? String(request.after[0]) : null
      const of = { tokenId, now: clock.now(), idleMs: SESSION_IDLE_MS }
      const rows = await listSessionRows(db, of, before, request.limit + 1)
      return pageOf(
        rows,
        request,
        (row) => present(row, actor),
        ({ id }) => cursors.encode(listName, [id]),
      )
    },

    async endOne(actor, tokenId, sessionId) {
      if ((await endThose(actor, tokenId, async () => [sessionId])) === 0) throw fail('not_found', 'No such session.')
    },

    endOthers: (actor, tokenId) =>
      endThose(actor, tokenId, async (trx) =>
        (await sessionIdsOf(trx, tokenId)).filter((id) => id !== actor.session?.id),
      ),

    async flushUse() {
      // In one order, as `sessionIdsOf` has it: so that no two transactions wait for each other.
      const uses = [...used].sort(([one], [other]) => (one < other ? -1 : 1))
      if (uses.length === 0) return
      await db.transaction().execute(async (trx) => {
        for (const [id, at] of uses) await markSessionUsed(trx, id, at)
      })
      // Not before: until then the rows are behind.
      for (const [id, at] of uses) if (used.get(id) === at) used.delete(id)
    },

    purge: () => purgeSessions(db, clock.now(), SESSION_IDLE_MS),
  }
}

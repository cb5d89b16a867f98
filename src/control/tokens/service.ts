import { randomBytes } from 'node:crypto'
import { fail, invalidField, isFailure } from '../../contract/errors.ts'
import type { Page } from '../../contract/schema.ts'
import type { Scope } from '../../contract/scopes.ts'
import { type MintedToken, type NewToken, type OwnToken, TOKEN_FORM, type Token } from '../../contract/tokens.ts'
import { newId } from '../../kit/ids.ts'
import { iso, isoOrNull } from '../../kit/time.ts'
import type { Activity } from '../activity/service.ts'
import type { Db, TokenRow, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import { type Actor, SYSTEM } from '../http/actor.ts'
import type { Identity } from '../http/auth.ts'
import { type Cursors, pageOfVisible, pageRequest } from '../http/paging.ts'
import type { Streams } from '../http/streams/open-streams.ts'
import { beyond, type Reach, within } from './reach.ts'
import {
  countTokens,
  findToken,
  insertToken,
  listRootRows,
  listTokenRows,
  markRevoked,
  markUsed,
  missingServers,
  namedServers,
  revokedSince,
} from './store.ts'
import { type CachedToken, createTokenCache, hashOf, isSecretOf, SECRET_LENGTH } from './token-cache.ts'

export interface Tokens {
  identify(token: string): Identity | undefined | Promise<Identity | undefined>
  /** The identity of a token whose secret was proven another way, by the cookie of a session; undefined once it has ended. */
  find(tokenId: string): Identity | undefined | Promise<Identity | undefined>
  create(actor: Actor, request: NewToken): Promise<MintedToken>
  list(actor: Actor, query: { limit?: number; cursor?: string }): Promise<Page<Token>>
  /** What whoever asks can do and reach. */
  readOwn(actor: Actor): Promise<OwnToken>
  revoke(actor: Actor, tokenId: string): Promise<void>
  /** Fails with `not_found` where it is revoked, or can do or reach more than the actor. */
  requireVisible(actor: Actor, tokenId: string): Promise<void>
  /** Makes the first token if there is none, and returns its value. */
  ensureFirst(show: ShowToken): Promise<string | null>
  /** Makes the configured token unless it is there. Returns what is wrong with it, if something is. */
  ensureConfigured(value: string): Promise<string | null>
  /** The id of a token of the owner's own that can do everything, if there is one. */
  findOwner(): Promise<string | null>
  /** Another token that can do everything, for whoever is at the machine itself. */
  rescue(show: ShowToken): Promise<MintedToken>
  /** For ending links whose end a crash may have prevented. */
  recentlyRevoked(): Promise<string[]>
  /** Writes down when tokens were last used. */
  flushUse(): Promise<void>
}

/**
 * Shows a value to whoever is to have it. It is called before the token is kept: a value that could not be shown, since the
 * process was killed or nobody could be written to, is no token, and another one is made the next time.
 */
export type ShowToken = (value: string) => Promise<void>

interface Draft {
  row: TokenRow
  value: string
}

const LIST = 'tokens'
const EVERYTHING: Reach = { scopes: ['*'], servers: '*', expiresAt: null }
/** No link lives longer than this without its token being asked for again. */
const LINKS_OUTLIVE_MS = 7 * 24 * 3600_000

export function createTokens(deps: {
  db: Db
  activity: Activity
  streams: Streams
  cursors: Cursors
  clock: { now(): number }
  /** Told of every revocation, for what lies beyond this process's own streams. */
  onRevoked: (tokenId: string) => void
}): Tokens {
  const { db, activity, streams, cursors, clock } = deps
  const cache = createTokenCache()
  const used = new Map<string, number>()
  /** While a token is shown that is not kept yet, whoever is quick enough to use it waits. */
  let showing: Promise<unknown> = Promise.resolve()

  function accept(entry: CachedToken, secret: string): Identity | undefined {
    return isSecretOf(entry, secret) ? use(entry) : undefined
  }

  function use({ identity }: CachedToken): Identity | undefined {
    const now = clock.now()
    if (identity.expiresAt !== null && identity.expiresAt <= now) return undefined
    used.set(identity.id, now)
    return identity
  }

  async function load(id: string): Promise<CachedToken | undefined> {
    await showing
    const remember = cache.beginRead()
    const row = await findToken(db, id)
    if (row && row.revoked_at !== null) settleDoubt(id)
    if (!row || row.revoked_at !== null) return undefined
    const entry: CachedToken = { identity: identityOf(row), hash: Buffer.from(row.hash, 'hex') }
    remember(entry)
    return entry
  }

  function endUse(tokenId: string): void {
    cache.forget(tokenId)
    streams.endForToken(tokenId)
    deps.onRevoked(tokenId)
  }

  function settleDoubt(revokedId: string): void {
    if (cache.isDoubtful(revokedId)) endUse(revokedId)
  }

  async function keep(trx: Trx, actor: Actor, row: TokenRow): Promise<void> {
    await insertToken(trx, row)
    const { scopes, servers } = reachOf(row)
    await activity.record(trx, actor, 'token.created', null, { tokenId: row.id, name: row.name, scopes, servers })
  }

  function draft(request: Reach & { name: string }, createdBy: string | null): Draft {
    const secret = randomBytes(32).toString('hex')
    const id = newId('tok', clock.now())
    const row = tokenRow(id, secret, request, createdBy, clock.now())
    return { row, value: `gk_${id.slice('tok_'.length)}_${secret}` }
  }

  async function mint(trx: Trx, actor: Actor, { row, value }: Draft): Promise<MintedToken> {
    await keep(trx, actor, row)
    return { ...present(row), token: value }
  }

  function mintShown(name: string, show: ShowToken): Promise<MintedToken> {
    const drafted = draft({ ...EVERYTHING, name }, null)
    const minted = show(drafted.value).then(() => transact(db, SYSTEM, (trx) => mint(trx, SYSTEM, drafted)))
    showing = minted.catch(() => {})
    return minted
  }

  return {
    identify(token) {
      if (!TOKEN_FORM.test(token)) return undefined
      const id = tokenIdOf(token)
      const secret = token.slice(-SECRET_LENGTH)
      const cached = cache.find(id)
      if (cached) return accept(cached, secret)
      return load(id).then((entry) => (entry ? accept(entry, secret) : undefined))
    },

    find(tokenId) {
      const cached = cache.find(tokenId)
      return cached ? use(cached) : load(tokenId).then((entry) => (entry ? use(entry) : undefined))
    },

    async create(actor, request) {
      const expiresAt = request.expiresAt ? Date.parse(request.expiresAt) : null
      if (expiresAt !== null && expiresAt <= clock.now()) throw invalidField('/expiresAt', 'must lie in the future')
      const reach: Reach = { scopes: request.scopes, servers: request.servers, expiresAt }
      await requireGrantable(db, actor, reach)
      return transact(db, actor, (trx) => mint(trx, actor, draft({ ...reach, name: request.name }, actor.id)))
    },

    async list(actor, query) {
      const request = pageRequest(cursors, LIST, query)
      return pageOfVisible(
        request,
        (before, limit) => listTokenRows(db, before, limit),
        (row) => within(actor, reachOf(row)),
        (row) => present({ ...row, last_used_at: used.get(row.id) ?? row.last_used_at }),
        ({ id }) => cursors.encode(LIST, [id]),
      )
    },

    async readOwn({ id, name, scopes, servers, expiresAt }) {
      const named = servers === '*' ? servers : await namedServers(db, [...servers])
      return { id, name, scopes: [...scopes], servers: named, expiresAt: isoOrNull(expiresAt) }
    },

    async revoke(actor, tokenId) {
      const revoked = transact(db, actor, async (trx) => {
        const row = await findToken(trx, tokenId)
        if (row && row.revoked_at !== null) settleDoubt(tokenId)
        if (!isVisible(actor, row) || !(await markRevoked(trx, tokenId, clock.now()))) throw noSuchToken()
        await activity.record(trx, actor, 'token.revoked', null, { tokenId, name: row.name })
        onCommit(trx, () => endUse(tokenId))
      })
      await revoked.catch((error: unknown) => {
        if (!isFailure(error, 'not_found')) {
          cache.doubt(tokenId)
          streams.endForToken(tokenId)
        }
        throw error
      })
    },

    async requireVisible(actor, tokenId) {
      if (!isVisible(actor, await findToken(db, tokenId))) throw noSuchToken()
    },

    async ensureFirst(show) {
      if ((await countTokens(db)) > 0) return null
      return (await mintShown('admin', show)).token
    },

    async ensureConfigured(value) {
      const [, shortId = '', secret = ''] = TOKEN_FORM.exec(value) ?? []
      const id = `tok_${shortId}`
      const existing = await findToken(db, id)
      if (existing) return configuredFault(existing, secret, clock.now())
      const row = tokenRow(id, secret, { ...EVERYTHING, name: 'admin' }, null, clock.now())
      await transact(db, SYSTEM, (trx) => keep(trx, SYSTEM, row))
      return null
    },

    async findOwner() {
      const rows = await listRootRows(db)
      return rows.find((row) => isEverything(row, clock.now()))?.id ?? null
    },

    rescue: (show) => mintShown('rescue', show),

    recentlyRevoked: () => revokedSince(db, clock.now() - LINKS_OUTLIVE_MS),

    async flushUse() {
      const uses = [...used]
      if (uses.length === 0) return
      await db.transaction().execute(async (trx) => {
        for (const [id, at] of uses) await markUsed(trx, id, at)
      })
      // Not before: until then the rows are behind.
      for (const [id, at] of uses) if (used.get(id) === at) used.delete(id)
    },
  }
}

const isVisible = (actor: Actor, row: TokenRow | undefined): row is TokenRow =>
  row !== undefined && row.revoked_at === null && within(actor, reachOf(row))

const noSuchToken = () => fail('not_found', 'No such token, or this token cannot see it.')

function configuredFault(row: TokenRow, secret: string, now: number): string | null {
  if (row.revoked_at !== null) return 'GAMEKEEPER_ADMIN_TOKEN is a token that was revoked; choose another.'
  if (row.hash !== hashOf(secret).toString('hex'))
    return 'GAMEKEEPER_ADMIN_TOKEN has the id of another token; choose another.'
  if (!isEverything(row, now))
    return 'GAMEKEEPER_ADMIN_TOKEN is a token that cannot do everything, or has expired; choose another.'
  return null
}

function isEverything(row: TokenRow, now: number): boolean {
  const { scopes, servers, expiresAt } = reachOf(row)
  return scopes.includes('*') && servers === '*' && (expiresAt === null || expiresAt > now)
}

/** The id of the record of a token, from its value. */
export const tokenIdOf = (value: string) => `tok_${value.slice('gk_'.length, -1 - SECRET_LENGTH)}`

/** Refuses what the actor cannot hand on, and what makes no sense. */
export async function requireGrantable(db: Db, actor: Actor, reach: Reach): Promise<void> {
  const excess = beyond(actor, reach)
  if (excess.length > 0) throw fail('forbidden', `This token cannot grant ${excess.join(', ')}.`)
  if (reach.servers === '*') return
  if (reach.scopes.includes('servers:admin'))
    throw invalidField('/scopes', 'has servers:admin, which is for tokens for all servers')
  const missing = await missingServers(db, reach.servers)
  if (missing.length > 0) throw invalidField('/servers', `has no server ${missing.slice(0, 5).join(', ')}`)
}

export function tokenRow(
  id: string,
  secret: string,
  request: Reach & { name: string },
  createdBy: string | null,
  now: number,
): TokenRow {
  return {
    id,
    name: request.name,
    hash: hashOf(secret).toString('hex'),
    scopes: JSON.stringify(request.scopes),
    servers: JSON.stringify(request.servers),
    created_by: createdBy,
    created_at: now,
    expires_at: request.expiresAt,
    last_used_at: null,
    revoked_at: null,
  }
}

export function reachOf(row: Pick<TokenRow, 'scopes' | 'servers' | 'expires_at'>): Reach {
  return { scopes: JSON.parse(row.scopes) as Scope[], servers: JSON.parse(row.servers), expiresAt: row.expires_at }
}

/** What a token and an invitation say of themselves alike. */
export function presentGrant(row: Pick<TokenRow, 'id' | 'name' | 'scopes' | 'servers' | 'created_at'>) {
  const { scopes, servers } = reachOf({ ...row, expires_at: null })
  return {
    id: row.id,
    name: row.name,
    scopes: [...scopes],
    servers: servers === '*' ? servers : [...servers],
    createdAt: iso(row.created_at),
  }
}

export function identityOf(row: TokenRow): Identity {
  const { scopes, servers, expiresAt } = reachOf(row)
  return { id: row.id, name: row.name, scopes, servers: servers === '*' ? '*' : new Set(servers), expiresAt }
}

const present = (row: TokenRow): Token => ({
  ...presentGrant(row),
  createdBy: row.created_by,
  expiresAt: isoOrNull(row.expires_at),
  lastUsedAt: isoOrNull(row.last_used_at),
})

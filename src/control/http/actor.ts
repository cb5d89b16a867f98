import type { ActivitySource } from '../../contract/activity.ts'
import type { ChangeOrigin, KeptRequest } from '../../contract/agent.ts'
import { fail } from '../../contract/errors.ts'
import { allows, type Scope } from '../../contract/scopes.ts'
import type { Trx } from '../db/tables.ts'

/** Who is asking, from where and through what: everything that a decision or an activity entry needs. */
export interface Actor {
  type: 'token' | 'system'
  id: string
  name: string
  scopes: readonly Scope[]
  servers: '*' | ReadonlySet<string>
  expiresAt: number | null
  /** What the token was exchanged for, where the request came by a cookie. */
  session?: { id: string; endsAt: number } | undefined
  source: ActivitySource
  ip: string | null
  userAgent: string | null
  requestId: string | null
  /** The caller's own name for the request, the same again when it is repeated. */
  idempotencyKey?: string
  /** Keeps the answer for the caller's idempotency key, in the transaction of the change. */
  remember?: (trx: Trx, answer: unknown) => Promise<void>
  /** What it takes to keep the answer in a transaction that the caller does not wait for. */
  kept?: KeptRequest
}

export const SYSTEM: Actor = {
  type: 'system',
  id: 'system',
  name: 'Gamekeeper',
  scopes: ['*'],
  servers: '*',
  expiresAt: null,
  source: 'system',
  ip: null,
  userAgent: null,
  requestId: null,
}

export function sees(actor: Pick<Actor, 'servers'>, serverId: string): boolean {
  return actor.servers === '*' || actor.servers.has(serverId)
}

export function requireScope(actor: Actor, scope: Scope): void {
  if (!allows(actor.scopes, scope)) throw fail('forbidden', `The token lacks the scope ${scope}.`)
}

/** For what concerns no single server: creating one, or reading across all of them. */
export function requireAllServers(actor: Actor): void {
  if (actor.servers !== '*') throw fail('forbidden', 'This requires a token for all servers.')
}

/** One sentence for a server that is absent and for one that the token may not see: they cannot be told apart. */
export const noSuchServer = () => fail('not_found', 'No such server, or the token cannot see it.')

/** Who asks the agent for something, for an entry that is recorded later. */
export function originOf(actor: Actor): ChangeOrigin {
  const { id, requestId, ip, userAgent, source } = actor
  const cause = actor.type === 'token' ? { tokenId: id, requestId: requestId ?? '', ip, userAgent, source } : null
  return { cause, idempotency: actor.kept ?? null }
}

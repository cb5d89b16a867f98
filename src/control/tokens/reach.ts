// How far a token reaches, and whether one reaches further than another. Pure.
import { allows, type Scope } from '../../contract/scopes.ts'
import { type Actor, sees } from '../http/actor.ts'

export interface Reach {
  scopes: readonly Scope[]
  servers: '*' | readonly string[]
  expiresAt: number | null
}

type Holder = Pick<Actor, 'scopes' | 'servers' | 'expiresAt'>

/** What of `wanted` lies beyond the holder, in words; nothing where it all lies within. */
export function beyond(holder: Holder, wanted: Reach): string[] {
  const excess: string[] = []
  const scopes = wanted.scopes.filter((scope) => !allows(holder.scopes, scope))
  if (scopes.length > 0) excess.push(`the scopes ${scopes.join(', ')}`)
  if (wanted.servers === '*') {
    if (holder.servers !== '*') excess.push('all servers')
  } else if (wanted.servers.some((id) => !sees(holder, id))) {
    excess.push('servers that this token cannot see')
  }
  if (holder.expiresAt !== null && (wanted.expiresAt === null || wanted.expiresAt > holder.expiresAt)) {
    excess.push('a later expiry')
  }
  return excess
}

/** Whether a token may be shown to, and revoked by, the holder. When it ends does not matter for that. */
export function within(holder: Holder, token: Reach): boolean {
  return beyond({ ...holder, expiresAt: null }, token).length === 0
}

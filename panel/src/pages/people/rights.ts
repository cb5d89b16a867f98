// Rights in four steps that people understand, each with everything of the one before it.
import type { Scope } from '../../../../src/sdk/index.ts'

export const RIGHTS = ['look', 'console', 'files', 'everything'] as const
export type Right = (typeof RIGHTS)[number]

/** Files and backups hold passwords of the game, so looking does not reach into them. */
const ADDED: Record<Right, readonly Scope[]> = {
  look: ['servers:read', 'console:read', 'activity:read', 'subdomains:read'],
  console: ['console:write', 'power:write'],
  files: ['files:read', 'files:write', 'backups:read', 'backups:write'],
  everything: ['servers:write', 'subdomains:write'],
}

export function scopesOf(right: Right): Scope[] {
  return RIGHTS.slice(0, RIGHTS.indexOf(right) + 1).flatMap((each) => ADDED[each])
}

/** `owner` can do what concerns the whole instance too; null is a choice of scopes that has no name here. */
export function rightOf(scopes: readonly Scope[]): Right | 'owner' | null {
  if (scopes.includes('*')) return 'owner'
  const isSame = (right: Right) =>
    scopesOf(right).length === scopes.length && scopesOf(right).every((scope) => scopes.includes(scope))
  return RIGHTS.find(isSame) ?? null
}

import { OneOf, type Static } from './schema.ts'

export const SCOPES = [
  '*',
  'servers:read',
  'servers:write',
  'servers:admin',
  'backups:read',
  'backups:write',
  'files:read',
  'files:write',
  'subdomains:read',
  'subdomains:write',
  'activity:read',
  'console:read',
  'console:write',
  'templates:write',
  'power:write',
  'tokens:admin',
] as const

export const Scope = OneOf(SCOPES, { description: '`*` stands for every scope' })
export type Scope = Static<typeof Scope>

export function allows(granted: readonly Scope[], wanted: Scope): boolean {
  return granted.includes('*') || granted.includes(wanted)
}

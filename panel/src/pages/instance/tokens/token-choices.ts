import { msg } from '@lingui/core/macro'
import type { Scope } from '../../../../../src/sdk/index.ts'

/** As the contract has them; that none is missing is checked by its type. */
const ALL: Record<Scope, true> = {
  'servers:read': true,
  'servers:write': true,
  'servers:admin': true,
  'power:write': true,
  'console:read': true,
  'console:write': true,
  'files:read': true,
  'files:write': true,
  'backups:read': true,
  'backups:write': true,
  'subdomains:read': true,
  'subdomains:write': true,
  'activity:read': true,
  'templates:write': true,
  'tokens:admin': true,
  '*': true,
}
export const GRANTABLE = Object.keys(ALL) as Scope[]

export const LIFETIMES = {
  month: { label: msg`30 days`, days: 30 },
  year: { label: msg`A year`, days: 365 },
  always: { label: msg`Until it is revoked`, days: null },
} as const
export type Lifetime = keyof typeof LIFETIMES

export function endOf(lifetime: Lifetime, now: Date): string | null {
  const { days } = LIFETIMES[lifetime]
  return days === null ? null : new Date(now.getTime() + days * 86_400_000).toISOString()
}

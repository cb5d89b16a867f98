// What a token or an invitation may do and where, as it is typed.
import { SCOPES } from '../contract/scopes.ts'
import type { Scope } from '../sdk/index.ts'
import type { Context } from './context.ts'
import { UsageError } from './exit-codes.ts'
import { nearest } from './nearest.ts'
import { serverIdOf } from './server-reference.ts'

interface GrantOptions {
  scope?: string[]
  server?: string[]
}

/** All servers where none is named. */
export async function readGrant(context: Context, { scope = [], server = [] }: GrantOptions) {
  const client = context.client()
  const scopes = readScopes(scope)
  const servers = await Promise.all(server.map((reference) => serverIdOf(client, reference, context.io.signal)))
  return { scopes, servers: servers.length === 0 ? ('*' as const) : [...new Set(servers)] }
}

/** Repeated, or with commas between. */
function readScopes(given: readonly string[]): Scope[] {
  const words = given.flatMap((text) => text.split(',')).map((word) => word.trim())
  const known = (word: string): word is Scope => (SCOPES as readonly string[]).includes(word)
  if (words.length === 0) throw new UsageError('--scope is missing.', `Scopes: ${SCOPES.join(', ')}.`)
  const wrong = words.find((word) => !known(word))
  if (wrong === undefined) return [...new Set(words.filter(known))]
  const close = nearest(wrong, SCOPES)
  throw new UsageError(
    `There is no scope "${wrong}".`,
    close ? `Did you mean ${close}?` : `Scopes: ${SCOPES.join(', ')}.`,
  )
}

// Scopes as they are typed: repeated, or with commas between.
import { SCOPES } from '../contract/scopes.ts'
import type { Scope } from '../sdk/index.ts'
import { UsageError } from './exit-codes.ts'
import { nearest } from './nearest.ts'

export function readScopes(given: readonly string[]): Scope[] {
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

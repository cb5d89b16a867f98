// Tokens in use, cached in memory: most requests are authenticated without a database query. The cache is valid because
// only this process revokes tokens; when it cannot know whether it has, it asks the database.
import { hash, timingSafeEqual } from 'node:crypto'
import type { Identity } from '../http/auth.ts'

export interface CachedToken {
  identity: Identity
  hash: Buffer
  /** The secret that was found right. */
  proven?: Buffer
}

export interface TokenCache {
  find(tokenId: string): CachedToken | undefined
  /** Call before reading a row; the answer keeps what was read, unless anything was revoked since. */
  beginRead(): (entry: CachedToken) => void
  forget(tokenId: string): void
  /** Its revocation failed, and may yet have been committed: from now on it is read from the database at every use. */
  doubt(tokenId: string): void
  isDoubtful(tokenId: string): boolean
}

export const SECRET_LENGTH = 64
const CACHED_MAX = 10_000

export function createTokenCache(): TokenCache {
  const entries = new Map<string, CachedToken>()
  const doubtful = new Set<string>()
  let revocations = 0

  function forget(tokenId: string): void {
    revocations++
    doubtful.delete(tokenId)
    entries.delete(tokenId)
  }

  return {
    find: (tokenId) => entries.get(tokenId),
    beginRead() {
      const before = revocations
      return (entry) => {
        const { id } = entry.identity
        if (before !== revocations || doubtful.has(id)) return
        if (entries.size >= CACHED_MAX) entries.clear()
        entries.set(id, entry)
      }
    },
    forget,
    doubt(tokenId) {
      forget(tokenId)
      doubtful.add(tokenId)
    },
    isDoubtful: (tokenId) => doubtful.has(tokenId),
  }
}

/**
 * In constant time. A secret that was found right is compared with itself the next time, in memory only: hashing it again
 * would be the costliest part of most requests.
 */
export function isSecretOf(entry: CachedToken, secret: string): boolean {
  given.write(secret, 'latin1')
  if (entry.proven && timingSafeEqual(entry.proven, given)) return true
  if (!timingSafeEqual(entry.hash, hashOf(secret))) return false
  entry.proven = Buffer.from(given)
  return true
}

const given = Buffer.alloc(SECRET_LENGTH)

export const hashOf = (secret: string) => hash('sha256', secret.toLowerCase(), 'buffer')

/** Of a secret that is looked for by its hash: that of a session, a sign-in link or an invitation. */
export const hashOfSecret = (secret: string) => hash('sha256', secret, 'hex')

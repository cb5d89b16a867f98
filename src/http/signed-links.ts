// Links that open one door of an agent for a short time: signed by control, checked by the agent. A link for one
// purpose opens nothing else, whatever else about it is right.
import { errors, jwtVerify, SignJWT } from 'jose'
import { fail } from '../contract/errors.ts'

export type LinkPurpose = 'upload' | 'download' | 'read-content' | 'write-content' | 'download-backup'

export interface LinkGrant {
  serverId: string
  /** Whose link it is: it dies with the token. */
  tokenId: string
  /** When the token ends, and with it the link, whatever has renewed it; null: never. */
  tokenExpiresAt: number | null
  /** The request that asked for the link, for the activity. */
  requestId: string
  /** What exactly it opens: a path, a format, a limit. */
  detail: Record<string, string | number | boolean | null>
}

export interface OpenedLink extends LinkGrant {
  issuedAt: number
  expiresAt: number
}

export interface SignedLinks {
  sign(purpose: LinkPurpose, grant: LinkGrant, lifeMs: number): Promise<string>
  /** Throws `not_found` for a link that is not genuine, not for this purpose, or past its time by more than `graceMs`. */
  open(purpose: LinkPurpose, link: string, graceMs?: number): Promise<OpenedLink>
}

const ALGORITHM = 'HS256'
const ISSUER = 'gamekeeper'

export function createSignedLinks(key: Buffer, clock: { now(): number }): SignedLinks {
  return {
    sign(purpose, { serverId, ...claims }, lifeMs) {
      const now = Math.floor(clock.now() / 1000)
      return new SignJWT({ ...claims })
        .setProtectedHeader({ alg: ALGORITHM })
        .setIssuer(ISSUER)
        .setAudience(purpose)
        .setSubject(serverId)
        .setIssuedAt(now)
        .setExpirationTime(now + Math.ceil(lifeMs / 1000))
        .sign(key)
    },

    async open(purpose, link, graceMs = 0) {
      try {
        const { payload } = await jwtVerify(link, key, {
          algorithms: [ALGORITHM],
          issuer: ISSUER,
          audience: purpose,
          currentDate: new Date(clock.now()),
          clockTolerance: Math.floor(graceMs / 1000),
          requiredClaims: ['sub', 'iat', 'exp'],
        })
        // One that an older version has signed says nothing of its token.
        const { tokenId, tokenExpiresAt = null, requestId, detail } = payload as unknown as LinkGrant
        const { sub = '', iat = 0, exp = 0 } = payload
        if (tokenExpiresAt !== null && tokenExpiresAt <= clock.now()) throw new errors.JWTExpired('token', payload)
        const times = { issuedAt: iat * 1000, expiresAt: exp * 1000 }
        return { serverId: sub, tokenId, tokenExpiresAt, requestId, detail, ...times }
      } catch (error) {
        if (error instanceof errors.JOSEError)
          throw fail('not_found', 'The link is not valid, or its time is over.', error)
        throw error
      }
    },
  }
}

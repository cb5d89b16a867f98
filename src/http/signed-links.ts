// Links that give access to one agent route for a short time: signed by control, checked by the agent. A link is valid
// for one purpose only, whatever else about it is right.
import { errors, jwtVerify, SignJWT } from 'jose'
import type { ActivitySource } from '../contract/activity.ts'
import type { ArchiveFormat } from '../contract/agent/agent-files.ts'
import { fail } from '../contract/errors.ts'

/** What exactly a link of each purpose opens. */
export interface LinkDetails {
  upload: { uploadId: string; maxBytes: number }
  download: { path: string; format: ArchiveFormat | 'raw' }
  'read-content': { path: string }
  'write-content': {
    path: string
    maxBytes: number
    ifMatch?: string | null
    ifNoneMatch?: string | null
    ifUnmodifiedSince?: string | null
    overwrite?: boolean
  }
  'download-backup': BackupLink & ({ path: string } | { format: ArchiveFormat })
}

interface BackupLink {
  backupId: string
  /** Of the file that the archive is saved as, without its extension. */
  name: string
  createdAt: number
}

export type LinkPurpose = keyof LinkDetails

export interface LinkGrant<P extends LinkPurpose = LinkPurpose> {
  serverId: string
  /** Whose link it is: it dies with the token. */
  tokenId: string
  /** When the token ends, and with it the link, whatever has renewed it; null: never. */
  tokenExpiresAt: number | null
  /** The request that asked for the link, for the activity. */
  requestId: string
  /** Of a request that is forwarded under a link which nobody else sees; what comes by any other is recorded as `link`. */
  source?: ActivitySource
  detail: LinkDetails[P]
}

export interface OpenedLink<P extends LinkPurpose = LinkPurpose> extends LinkGrant<P> {
  issuedAt: number
  expiresAt: number
}

export interface SignedLinks {
  sign<P extends LinkPurpose>(purpose: P, grant: LinkGrant<P>, lifeMs: number): Promise<string>
  /** Throws `not_found` for a link that is not genuine, not for this purpose, or past its time by more than `graceMs`. */
  open<P extends LinkPurpose>(purpose: P, link: string, graceMs?: number): Promise<OpenedLink<P>>
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

    async open<P extends LinkPurpose>(purpose: P, link: string, graceMs = 0) {
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
        const { tokenId, tokenExpiresAt = null, requestId, source, detail } = payload as unknown as LinkGrant<P>
        const { sub = '', iat = 0, exp = 0 } = payload
        if (tokenExpiresAt !== null && tokenExpiresAt <= clock.now()) throw new errors.JWTExpired('token', payload)
        const times = { issuedAt: iat * 1000, expiresAt: exp * 1000 }
        const grant = { serverId: sub, tokenId, tokenExpiresAt, requestId, detail }
        return { ...grant, ...(source ? { source } : {}), ...times }
      } catch (error) {
        if (error instanceof errors.JOSEError) throw fail('not_found', 'The link is not valid or has expired.', error)
        throw error
      }
    },
  }
}

// What a signed link gives access to, and how long an upload link is valid.
import type { FastifyRequest } from 'fastify'
import type { FactCause } from '../../contract/agent.ts'
import { fail } from '../../contract/errors.ts'
import { USER_AGENT_MAX_CHARS } from '../../contract/fixed-limits.ts'
import type { LinkPurpose, OpenedLink, SignedLinks } from '../../http/signed-links.ts'
import type { Shares } from '../fair-shares.ts'
import type { Change } from '../files/changes/changes.ts'
import type { LinkRevocations } from './revocations.ts'

/** For so long after its last byte an upload's link is good, whatever time it was given. */
export const RENEWED_MS = 15 * 60_000
/** However long bytes flow. Shorter than a revocation is remembered. */
const LONGEST_MS = 6 * 24 * 3600_000

/** Given to nobody outside: what became of the server is said in its own words. */
const FOR_CONTROL = new Set<LinkPurpose>(['read-content', 'write-content'])

type Under = <T, P extends LinkPurpose>(
  purpose: P,
  link: string,
  work: (opened: OpenedLink<P>, signal: AbortSignal) => Promise<T>,
) => Promise<T>

export interface LinkDoor {
  /** Runs `work` under the link; it is aborted when the link's token is revoked or ends, and when the server is put aside. */
  under: Under
  /** The same, in its turn among the transfers of all servers. */
  transfer: Under
  /** For what is under a link already, when it comes to bytes. */
  inTurn: Shares['run']
  /** Ends what is under way for a server, and resolves once it has ended. */
  endForServer(serverId: string): Promise<void>
  /** Ends what is under way, so that the service can stop: an upload by tus goes on where it was. */
  close(): void
  /** Bytes have arrived for this upload. */
  renew(uploadId: string, at?: number): void
}

export function createLinkDoor(deps: {
  links: SignedLinks
  revocations: LinkRevocations
  transfers: Shares
  /** Whether the server has its folders here; without them its links are dead. */
  isHere: (serverId: string) => boolean
  clock: { now(): number }
}): LinkDoor {
  const lastBytesAt = new Map<string, number>()
  const closing = new AbortController()
  const underWay = new Set<{ serverId: string; abort: AbortController; done: Promise<unknown> }>()

  async function open<P extends LinkPurpose>(purpose: P, link: string): Promise<OpenedLink<P>> {
    const opened = await deps.links.open(purpose, link, purpose === 'upload' ? LONGEST_MS : 0)
    if (purpose === 'upload') requireInTime(opened as OpenedLink<'upload'>)
    if (!FOR_CONTROL.has(purpose) && !deps.isHere(opened.serverId)) throw dead()
    return opened
  }

  function requireInTime({ detail, expiresAt }: OpenedLink<'upload'>): void {
    const renewedUntil = (lastBytesAt.get(detail.uploadId) ?? Number.NEGATIVE_INFINITY) + RENEWED_MS
    if (deps.clock.now() > Math.max(expiresAt, renewedUntil)) throw dead()
  }

  function forgetOld(): void {
    for (const [uploadId, at] of lastBytesAt) if (at + RENEWED_MS < deps.clock.now()) lastBytesAt.delete(uploadId)
  }

  function abortAt(at: number | null, abort: AbortController): NodeJS.Timeout | undefined {
    const leftMs = at === null ? Number.POSITIVE_INFINITY : at - deps.clock.now()
    return leftMs > LONGEST_MS ? undefined : setTimeout(() => abort.abort(dead()), leftMs).unref()
  }

  const under: Under = async (purpose, link, work) => {
    const opened = await open(purpose, link)
    if (purpose === 'upload') forgetOld()
    const abort = new AbortController()
    const done = deps.revocations.under(opened.tokenId, (revoked) =>
      work(opened, AbortSignal.any([revoked, closing.signal, abort.signal])),
    )
    const entry = { serverId: opened.serverId, abort, done }
    const expiry = abortAt(opened.tokenExpiresAt, abort)
    underWay.add(entry)
    try {
      return await done
    } finally {
      clearTimeout(expiry)
      underWay.delete(entry)
    }
  }

  return {
    under,
    transfer: (purpose, link, work) =>
      under(purpose, link, (opened, signal) => deps.transfers.run(opened.serverId, signal, () => work(opened, signal))),
    inTurn: deps.transfers.run,
    async endForServer(serverId) {
      const mine = [...underWay].filter((entry) => entry.serverId === serverId)
      for (const { abort } of mine) abort.abort(fail('server_busy', 'The server is being deleted.'))
      await Promise.allSettled(mine.map(({ done }) => done))
    },
    close() {
      closing.abort(fail('not_ready', 'The service is stopping.'))
    },
    renew(uploadId, at = deps.clock.now()) {
      lastBytesAt.set(uploadId, at)
    },
  }
}

const dead = () => fail('not_found', 'The link is not valid or has expired.')

export function causeOf(opened: OpenedLink, request: FastifyRequest): FactCause {
  return {
    tokenId: opened.tokenId,
    requestId: opened.requestId,
    ip: request.ip,
    userAgent: request.headers['user-agent']?.slice(0, USER_AGENT_MAX_CHARS) ?? '',
    ...(opened.source ? { source: opened.source } : {}),
  }
}

export function changeOf(kind: string, opened: OpenedLink, request: FastifyRequest): Change {
  return { kind, requestId: null, origin: { cause: causeOf(opened, request), idempotency: null } }
}

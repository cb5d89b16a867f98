// What a link issued to a caller is signed for: it lives no longer than the caller's token.
import type { LinkGrant, LinkPurpose } from '../../http/signed-links.ts'
import type { Actor } from './actor.ts'

export const LINK_LIFE_MS = 15 * 60_000

export function grantOf<P extends LinkPurpose>(
  actor: Actor,
  serverId: string,
  detail: LinkGrant<P>['detail'],
): LinkGrant<P> {
  const { id: tokenId, expiresAt: tokenExpiresAt, requestId } = actor
  return { serverId, tokenId, tokenExpiresAt, requestId: requestId ?? '', detail }
}

/** When a link that is signed now ends, unless it is renewed. */
export const linkEnd = ({ expiresAt }: Actor, now: number) => Math.min(now + LINK_LIFE_MS, expiresAt ?? Infinity)

// The base URL of links given to a caller. Only ever used in the response to an authenticated request: a caller that
// lies about the host gets a link that does not work, and nobody else sees it.
import type { FastifyRequest } from 'fastify'
import { countHeader } from '../../http/server.ts'
import type { IsOwnOrigin } from './session-cookie.ts'

export type BaseUrlOf = (request: FastifyRequest) => string

/** A name, an IPv4 address or a bracketed IPv6 address, with a port or without, and nothing else. */
const HOST = /^(?:[a-z0-9_.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/** The configured address; else the one that the request was sent to; else the one that we listen on. */
export function createBaseUrl(publicUrl: string | null, ownUrl: () => string): BaseUrlOf {
  return (request) => publicUrl ?? calledAt(request) ?? ownUrl()
}

/** The origins that a page of ours can have: the configured one, the one that the request was sent to, and our own. */
export function createIsOwnOrigin(publicUrl: string | null, ownUrl: () => string): IsOwnOrigin {
  const isOf = (origin: string, url: string | null) => url !== null && URL.parse(url)?.origin === origin
  return (origin, request) => [publicUrl, calledAt(request), ownUrl()].some((url) => isOf(origin, url))
}

/** What a trusted proxy says in `X-Forwarded-Host` and `X-Forwarded-Proto` counts; what others say there does not. */
function calledAt(request: FastifyRequest): string | null {
  const { host, protocol } = request
  if (countHeader(request.raw, 'host') !== 1 || !HOST.test(host)) return null
  if (protocol !== 'http' && protocol !== 'https') return null
  return URL.canParse(`${protocol}://${host}`) ? `${protocol}://${host}` : null
}

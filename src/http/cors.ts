// Pages of other origins may call us if their origin is configured. Never with credentials: a token is in a header that
// the page itself must set, so a page that has none gets what anybody gets.
import type { FastifyReply, FastifyRequest } from 'fastify'

export interface Cors {
  /** Sets what the browser asks every answer for, errors too. */
  mark(request: FastifyRequest, reply: FastifyReply): void
  /** Whether it only asks if it may ask. Browsers send that without a token. */
  isPreflight(request: FastifyRequest): boolean
  answerPreflight(reply: FastifyReply): void
}

/** All of them, whatever the path: only then can a page read that it was refused with 404 or 405. */
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

const REQUEST_HEADERS = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'If-Match',
  'If-Modified-Since',
  'If-None-Match',
  'If-Range',
  'If-Unmodified-Since',
  'Last-Event-ID',
  'Range',
  'Tus-Resumable',
  'Upload-Checksum',
  'Upload-Length',
  'Upload-Metadata',
  'Upload-Offset',
  'X-Gamekeeper-Client',
  'X-Requested-With',
].join(', ')

const ANSWER_HEADERS = [
  'Accept-Ranges',
  'Allow',
  'Content-Disposition',
  'Content-Length',
  'Content-Range',
  'ETag',
  'Idempotency-Replayed',
  'Last-Modified',
  'Location',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'Tus-Checksum-Algorithm',
  'Tus-Extension',
  'Tus-Max-Size',
  'Tus-Resumable',
  'Tus-Version',
  'Upload-Expires',
  'Upload-Length',
  'Upload-Metadata',
  'Upload-Offset',
  'WWW-Authenticate',
  'X-Request-Id',
].join(', ')

const PREFLIGHT_SECONDS = '600'

/** `*` among the origins allows any. */
export function createCors(origins: readonly string[]): Cors {
  const allowed: ReadonlySet<string> = new Set(origins)
  const any = allowed.has('*')
  const isAllowed = ({ headers: { origin } }: FastifyRequest) => origin !== undefined && (any || allowed.has(origin))

  return {
    mark(request, reply) {
      if (allowed.size === 0) return
      // What one origin was answered must not be kept for another.
      if (!any) reply.header('vary', 'Origin')
      if (!isAllowed(request)) return
      reply.header('access-control-allow-origin', any ? '*' : request.headers.origin)
      reply.header('access-control-expose-headers', ANSWER_HEADERS)
    },
    isPreflight: (request) =>
      request.method === 'OPTIONS' &&
      request.headers['access-control-request-method'] !== undefined &&
      isAllowed(request),
    answerPreflight(reply) {
      reply
        .code(204)
        .headers({
          'access-control-allow-methods': METHODS,
          'access-control-allow-headers': REQUEST_HEADERS,
          'access-control-max-age': PREFLIGHT_SECONDS,
        })
        .send()
    },
  }
}

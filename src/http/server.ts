// What control's and the agent's HTTP servers share: request ids, hardening headers, one error handler. It builds, it
// never listens.
import type { IncomingMessage } from 'node:http'
import type { ServerOptions } from 'node:https'
import type { Socket } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import type { Logger } from 'pino'
import { type Failure, fail } from '../contract/errors.ts'
import { CONNECTIONS_MAX, JSON_BODY_MAX_BYTES } from '../contract/fixed-limits.ts'
import { newId } from '../kit/ids.ts'
import { hasBody, throwAwayUnread } from './bodies.ts'
import type { Certificate } from './certificate.ts'
import { type ConnectionLimits, type Connections, connectionLimits, guardConnections } from './connections.ts'
import { createCors } from './cors.ts'
import { collectMethods } from './methods.ts'
import { PROBLEM_TYPE, problemOf, toFailure } from './problem.ts'
import { serializersFactory } from './schema-compilers.ts'
import { ChunkedMessage, limitSmallChunks } from './small-chunks.ts'
import { useValidation } from './validation.ts'

export interface HttpOptions {
  logger: Logger
  /** Addresses whose `X-Forwarded-For` is believed; none by default. */
  trustedProxies: readonly string[]
  /** Whether callers reach us by HTTPS, so that browsers may be told to keep to it. */
  https: boolean
  /** Speaks TLS with it; plain HTTP by default. */
  certificate?: Certificate | undefined
  /** Whose pages may call us from a browser; `*` for any. None by default. */
  corsOrigins?: readonly string[]
  /** Answers what no route does; false leaves it unanswered. */
  answerElse?: (request: FastifyRequest, reply: FastifyReply) => boolean
  /** At once; as many as a process with descriptors in plenty has by default. */
  connections?: number
  /** Those for that many connections by default. */
  limits?: ConnectionLimits
}

const HEADER_MAX = 16 * 1024
/** A signed link stands in the path and carries the path of a file, which may have 4,096 bytes. */
const PARAM_MAX = 8 * 1024

const HTTP_OPTIONS = {
  maxHeaderSize: HEADER_MAX,
  headersTimeout: 20_000,
  connectionsCheckingInterval: 5_000,
  // Node would refuse a request without it in words of its own.
  requireHostHeader: false,
  IncomingMessage: ChunkedMessage,
}

/** By the callback too: a host name with two addresses has two servers, and only one is told of a new certificate. */
const tlsOptions = (certificate: Certificate): ServerOptions => ({
  ...HTTP_OPTIONS,
  cert: certificate.current().cert,
  key: certificate.current().key,
  SNICallback: (_name, done) => done(null, certificate.current().context),
  handshakeTimeout: HTTP_OPTIONS.headersTimeout,
})

export function createHttpServer(options: HttpOptions): FastifyInstance {
  const headers = hardeningHeaders(options.https)
  const cors = createCors(options.corsOrigins ?? [])
  const prepare = (request: FastifyRequest, reply: FastifyReply) => {
    reply.headers(headers).header('x-request-id', request.id)
    cors.mark(request, reply)
  }
  const app = Fastify({
    loggerInstance: childless(options.logger),
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: JSON_BODY_MAX_BYTES,
    trustProxy: options.trustedProxies.length > 0 ? [...options.trustedProxies] : false,
    genReqId: () => newId('req'),
    return503OnClosing: false,
    // Requests under way are answered; connections that only wait are closed.
    forceCloseConnections: 'idle',
    requestTimeout: 0,
    ...(options.certificate ? { https: tlsOptions(options.certificate) } : { http: HTTP_OPTIONS }),
    clientErrorHandler: refuseBrokenRequest,
    frameworkErrors: (error, request, reply) => {
      prepare(request, reply)
      answerError(error, request, reply)
    },
    schemaController: { compilersFactory: serializersFactory },
    routerOptions: { maxParamLength: PARAM_MAX, ignoreTrailingSlash: true },
  }) as unknown as FastifyInstance
  useValidation(app)
  const methodsOf = collectMethods(app)
  const limits = options.limits ?? connectionLimits(options.connections ?? CONNECTIONS_MAX)
  limitSmallChunks(app.server)
  const connections = guardConnections(app.server, options.trustedProxies, limits)
  const receive = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => {
    prepare(request, reply)
    if (hasBody(request)) reply.raw.once('prefinish', () => throwAwayUnread(request.raw))
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      return done(fail('invalid_request', 'The request has no Host header.'))
    if (cors.isPreflight(request)) return cors.answerPreflight(reply)
    if (!request.is404) {
      // A route of its own, such as that of tus, says what else there is, and this as any other path does.
      if (request.method === 'OPTIONS') reply.header('allow', methodsOf(request.url).join(', '))
      return done()
    }
    // Before its body is read: there is nobody to read it for.
    const methods = methodsOf(request.url)
    if (methods.length === 0) {
      if (options.answerElse?.(request, reply)) return
      return done(noSuchPath())
    }
    if (request.method !== 'OPTIONS') return done(otherMethod(methods))
    reply.code(204).header('allow', methods.join(', ')).send()
  }
  app.addHook('onRequest', (request, reply, done) =>
    connections.arrived(request.raw, () => receive(request, reply, done)),
  )
  closeAsTheyFallIdle(app, connections)
  app.setErrorHandler(answerError)
  app.setNotFoundHandler((request, reply) => answerError(noSuchPath(), request, reply))
  return app
}

/** A connection whose request was under way when the close began is kept alive by nobody else's decision. */
function closeAsTheyFallIdle(app: FastifyInstance, connections: Connections): void {
  let closing = false
  app.addHook('preClose', (done) => {
    closing = true
    done()
  })
  app.addHook('onResponse', (request, _reply, done) => {
    connections.ended(request.raw)
    if (closing) setImmediate(() => app.server.closeIdleConnections())
    done()
  })
}

/** Every line that we log names its request itself; a logger for each request would cost more than most requests do. */
function childless(logger: Logger): Logger {
  const itself: Logger = Object.create(logger, { child: { value: () => itself } })
  return itself
}

const noSuchPath = () => fail('not_found', 'There is nothing at this path. The API reference is at /docs.')

function otherMethod(methods: readonly string[]): Failure {
  const allow = methods.join(', ')
  return fail('method_not_allowed', { detail: `This path takes ${allow}.`, headers: { allow } })
}

function hardeningHeaders(https: boolean): Record<string, string> {
  return {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    ...(https ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  }
}

function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const failure = toFailure(error)
  logFailure(failure, request)
  // A body that was not read to its end would be taken for the next request on this connection.
  if (failure.status === 413) reply.header('connection', 'close')
  if (failure.headers) reply.headers(failure.headers)
  const body = JSON.stringify(problemOf(failure, request.id))
  return reply.code(failure.status).header('content-type', PROBLEM_TYPE).serializer(String).send(body)
}

function logFailure(failure: Failure, request: FastifyRequest): void {
  const where = { requestId: request.id, method: request.method, path: loggedPath(request) }
  if (failure.status >= 500)
    request.log.error({ ...where, code: failure.code, err: failure.cause ?? failure }, 'request failed')
  else request.log.debug({ ...where, code: failure.code }, failure.detail)
}

/** The path and never the query, where somebody may have put a token; and never a signed link, which is one. */
function loggedPath(request: FastifyRequest): string | undefined {
  const route = request.routeOptions.url
  return route?.includes(':link') ? route : request.url.split('?', 1)[0]
}

/** What is so broken that no request could be read from it. */
function refuseBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return
  const tooLarge = error.code === 'HPE_HEADER_OVERFLOW'
  const failure = tooLarge
    ? fail('headers_too_large', `Request headers may be ${HEADER_MAX / 1024} KiB at most.`)
    : fail('invalid_request', 'This is not an HTTP request that can be read.')
  const requestId = newId('req')
  const body = JSON.stringify(problemOf(failure, requestId))
  const reason = tooLarge ? 'Request Header Fields Too Large' : 'Bad Request'
  const head = [
    `HTTP/1.1 ${failure.status} ${reason}`,
    `content-type: ${PROBLEM_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** Node keeps the first of several; a request with two is refused, since a proxy may have looked at the other. */
export function countHeader(request: IncomingMessage, name: string): number {
  let count = 0
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const header = request.rawHeaders[i]
    if (header?.length === name.length && header.toLowerCase() === name) count++
  }
  return count
}

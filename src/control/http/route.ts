// Puts an operation of the contract behind a route: who may call it, its input, one call, its response.
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify'
import { OPEN_BODY_MAX_BYTES } from '../../contract/fixed-limits.ts'
import {
  type AnswerOf,
  BASE_PATH,
  type BodyOf,
  type Operation,
  type ParamsOf,
  type QueryOf,
} from '../../contract/operation.ts'
import { hasBody } from '../../http/bodies.ts'
import { withoutTrailingSlash } from '../../http/methods.ts'
import type { Actor } from './actor.ts'
import type { Auth } from './auth.ts'
import type { BaseUrlOf } from './base-url.ts'
import type { BodyPace } from './body-pace.ts'
import { createBodyTurns } from './body-turns.ts'
import { describe } from './document/openapi.ts'
import type { Idempotency } from './idempotency.ts'
import { refuseContentOfGet } from './json-body.ts'

export interface Api {
  app: FastifyInstance
  auth: Auth
  idempotency: Idempotency
  bodyPace: BodyPace
  /** How links begin that the caller is given. */
  baseUrlOf: BaseUrlOf
}

export interface Call<O extends Operation> {
  actor: Actor
  params: ParamsOf<O>
  query: QueryOf<O>
  body: BodyOf<O>
  request: FastifyRequest
  reply: FastifyReply
}

export interface ServeOptions<R, A> {
  /** The status, where an operation has more than one that means success. By default the first of its answers. */
  status?: (result: R) => number
  /** The address of what was made. */
  location?: (result: R) => string
  /** What of the result is the answer; by default all of it. */
  body?: (result: R) => A
}

export const ACTOR = Symbol('actor')
const OPERATION = Symbol('operation')
type Entered = FastifyRequest & { [ACTOR]: Actor; [OPERATION]?: Operation }

/** What a request asks for. Fastify puts its options together anew each time that it is asked for them. */
export function operationOf(request: FastifyRequest): Operation | undefined {
  return (request as Entered)[OPERATION] ?? (request.routeOptions.config as { operation?: Operation }).operation
}

const tokenOf = (request: FastifyRequest) => (request as Entered)[ACTOR].id

export function serve<O extends Operation, R>(
  api: Api,
  operation: O,
  handler: (call: Call<O>) => R | Promise<R>,
  options: ServeOptions<R, AnswerOf<O>> & { body: (result: R) => AnswerOf<O> },
): void
export function serve<O extends Operation>(
  api: Api,
  operation: O,
  handler: (call: Call<O>) => AnswerOf<O> | Promise<AnswerOf<O>>,
  options?: ServeOptions<AnswerOf<O>, AnswerOf<O>>,
): void
export function serve<O extends Operation, R>(
  { app, auth, idempotency, bodyPace }: Api,
  operation: O,
  handler: (call: Call<O>) => R | Promise<R>,
  options: ServeOptions<R, AnswerOf<O>> = {},
): void {
  const status = Number(Object.keys(operation.answers)[0])
  // What anybody may ask for has nobody whose keys they could be.
  const takesKeys = operation.method === 'POST' && !operation.isOpen
  const isGet = operation.method === 'GET'
  const bodyTurns = createBodyTurns(operation, bodyPace, tokenOf)
  const takesNoBody = !operation.body && !operation.rawBody

  function answer(reply: FastifyReply, result: R): unknown {
    // A stream answers by itself.
    if (reply.sent || reply.raw.headersSent) return reply
    reply.code(options.status?.(result) ?? status)
    if (options.location) reply.header('location', options.location(result))
    const body = options.body ? options.body(result) : result
    return body === undefined ? reply.send() : body
  }

  function enter(request: FastifyRequest, reply: FastifyReply, actor: Actor): undefined | Promise<unknown> {
    // Where no body belongs, the type of none does not matter, whatever a client's library adds.
    if (takesNoBody && request.headers['content-type'] !== undefined) delete request.headers['content-type']
    ;(request as Entered)[ACTOR] = actor
    ;(request as Entered)[OPERATION] = operation
    const { serverId } = request.params as { serverId?: string }
    const denied = operation.scope === null ? undefined : auth.authorize(actor, serverId, operation.scope)
    if (denied || !hasBody(request)) return denied
    return isGet ? refuseContentOfGet(request) : bodyTurns.wait(request, reply, actor.id)
  }

  const route: RouteShorthandOptions = {
    ...bodyTurns.hooks,
    schema: describe(operation),
    config: { operation } as object,
    ...(operation.isOpen ? { bodyLimit: OPEN_BODY_MAX_BYTES } : {}),
    onRequest: (request, reply, done) => {
      try {
        const actor = operation.isOpen ? auth.stranger(request) : auth.authenticate(request, reply)
        const entered =
          actor instanceof Promise ? actor.then((found) => enter(request, reply, found)) : enter(request, reply, actor)
        if (entered) entered.then(() => done(), done)
        else done()
      } catch (error) {
        done(error as Error)
      }
    },
  }
  async function answerKeyed(call: Call<O>, key: string): Promise<unknown> {
    const { actor, request, reply } = call
    const keyed = {
      tokenId: actor.id,
      credential: auth.credentialOf(request),
      key,
      method: request.method,
      url: withoutTrailingSlash(request.url),
      body: request.body,
    }
    const { answer: body, replayed } = await idempotency.once(keyed, async (remember, kept) =>
      handler({ ...call, actor: { ...actor, remember, kept, idempotencyKey: key } }),
    )
    if (replayed) reply.header('idempotency-replayed', 'true')
    return answer(reply, body as R)
  }

  app.route({
    ...route,
    method: operation.method,
    url: BASE_PATH + operation.path.replace(/\{(\w+)\}/g, ':$1'),
    handler(request, reply) {
      const call = {
        actor: (request as Entered)[ACTOR],
        params: request.params,
        query: request.query,
        body: request.body,
        request,
        reply,
      } as Call<O>
      const key = takesKeys ? request.headers['idempotency-key'] : undefined
      if (key !== undefined) return answerKeyed(call, String(key))
      const result = handler(call)
      // What can be answered at once is, without a turn through a promise (`npm run bench -- api`).
      return result instanceof Promise ? result.then((late) => answer(reply, late)) : answer(reply, result)
    },
  })
}

// Reads the JSON body of a request in its turn: a large one waits for its token's pace before it is read, and reading,
// checking and using it each take their own turn of the event loop.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify'
import { LARGE_BODIES } from '../../contract/fixed-limits.ts'
import type { Operation } from '../../contract/operation.ts'
import { whileClientStays } from '../../http/client-left.ts'
import type { BodyPace } from './body-pace.ts'
import { announcedBytes, readBody, readText } from './json-body.ts'

const IS_LARGE = Symbol('is large')
/** Bytes of its body that were counted before it had arrived. */
const COUNTED = Symbol('counted')
type Arriving = FastifyRequest & { [IS_LARGE]?: boolean; [COUNTED]?: number }

const NEVER = new AbortController().signal
const isAnnounced = ({ headers }: FastifyRequest) => headers['content-length'] !== undefined
const arrivedBytes = ({ body }: FastifyRequest) => (body instanceof Buffer ? body.length : 0)

export interface BodyTurns {
  /** Before the body is read; undefined for one that may be at once. */
  wait(request: FastifyRequest, reply: FastifyReply, tokenId: string): undefined | Promise<void>
  hooks: Pick<RouteShorthandOptions, 'preValidation' | 'preHandler'>
}

export function createBodyTurns(
  operation: Operation,
  bodyPace: BodyPace,
  tokenOf: (request: FastifyRequest) => string,
): BodyTurns {
  async function awaitTurn(request: Arriving, tokenId: string, signal: AbortSignal): Promise<void> {
    // Of unknown size: a small one has mostly arrived with its headers.
    if (!isAnnounced(request)) await nextTurn()
    const { complete, readableLength } = request.raw
    const bytes = complete ? readableLength : announcedBytes(request)
    await bodyPace.turnOf(tokenId, bytes, signal)
    if (bytes > LARGE_BODIES.bytes) request[COUNTED] = bytes
  }

  async function readLarge(request: Arriving): Promise<void> {
    const bytes = arrivedBytes(request)
    if (!isAnnounced(request) && request[COUNTED] !== bytes) await bodyPace.turnOf(tokenOf(request), bytes)
    request.body = readBody(request, operation)
    request[IS_LARGE] = true
    await nextTurn()
  }

  function readSmall(request: Arriving): void {
    const counted = request[COUNTED]
    if (counted !== undefined) bodyPace.giveBack(tokenOf(request), counted - arrivedBytes(request))
    request.body = readBody(request, operation)
  }

  const hooks: BodyTurns['hooks'] = {}
  const { rawBody } = operation
  // One without a schema is bytes that flow: the handler reads them as they come.
  if (rawBody?.schema)
    hooks.preValidation = (request, _reply, done) => {
      try {
        request.body = readText(request, rawBody.types)
        done()
      } catch (error) {
        done(error as Error)
      }
    }
  else if (!rawBody && operation.method !== 'GET')
    hooks.preValidation = (request, _reply, done) => {
      if (arrivedBytes(request) > LARGE_BODIES.bytes) return void readLarge(request).then(() => done(), done)
      try {
        readSmall(request)
        done()
      } catch (error) {
        done(error as Error)
      }
    }
  if (operation.body)
    hooks.preHandler = (request, _reply, done) => ((request as Arriving)[IS_LARGE] ? void setImmediate(done) : done())
  return {
    hooks,
    wait(request, reply, tokenId) {
      if (rawBody || announcedBytes(request) <= LARGE_BODIES.bytes) return undefined
      return whileClientStays(reply, NEVER, (signal) => awaitTurn(request, tokenId, signal))
    },
  }
}

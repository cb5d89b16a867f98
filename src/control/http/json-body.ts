// The JSON body of a request. Bodies arrive as bytes, whatever their type: only once the operation is known is it clear
// whether it wants one.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { fail } from '../../contract/errors.ts'
import { LARGE_BODIES } from '../../contract/fixed-limits.ts'
import type { Operation } from '../../contract/operation.ts'
import { bodyOf } from '../../http/bodies.ts'
import { dropAbsent } from './absent-fields.ts'
import { hasTooManyTokens } from './json-shape.ts'

const JSON_TYPE = /^application\/(?:json|[\w.+-]+\+json)(?:\s*;|$)/i
const utf8 = new TextDecoder('utf-8', { fatal: true })
/** What may arrive where no body belongs: `{}`, and blanks around it. */
const NO_BODY_BYTES_MAX = 1024

/** Bodies of the API are taken as bytes, up to the limit, and read once the operation is known. */
export function takeBodiesAsBytes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
}

/** Its rest is not worth reading at full speed. Small ones have mostly arrived, and their connections are kept. */
export function isRefusedLargeBody(request: FastifyRequest, { statusCode }: FastifyReply): boolean {
  return statusCode === 429 && announcedBytes(request) > LARGE_BODIES.bytes
}

/** Before a body has arrived, one of unknown size counts as the smallest of the large ones. */
export const announcedBytes = ({ headers }: FastifyRequest) =>
  Number(headers['content-length'] ?? LARGE_BODIES.bytes + 1)

export function readBody(request: FastifyRequest, operation: Operation): unknown {
  const bytes = bytesOf(request)
  if (!operation.body) return void refuseContent(bytes)
  if (bytes.length === 0) return {}
  if (!JSON_TYPE.test(request.headers['content-type'] ?? ''))
    throw fail('unsupported_media_type', 'The body must be JSON, sent with Content-Type: application/json.')
  if (hasTooManyTokens(bytes)) throw bodyFault('has more values than any request takes')
  const body = parseJson(bytes)
  dropAbsent(operation.body, body)
  return body
}

/** A body of one of these types, for a handler that reads it itself. */
export function readText(request: FastifyRequest, types: readonly string[]): string {
  const bytes = bytesOf(request)
  if (bytes.length === 0) throw bodyFault('is required')
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (!types.includes(type)) throw fail('unsupported_media_type', `The body must be one of ${types.join(', ')}.`)
  try {
    return utf8.decode(bytes)
  } catch (error) {
    throw bodyFault('is not UTF-8', error)
  }
}

/** Without a body and without its type, Fastify parses nothing. */
const bytesOf = ({ body }: FastifyRequest) => (body instanceof Buffer ? body : Buffer.alloc(0))

/** Fastify does not read the body of a GET, so it is read here. */
export async function refuseContentOfGet(request: FastifyRequest): Promise<undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of bodyOf(request.raw, { signal: new AbortController().signal })) {
    size += chunk.length
    if (size > NO_BODY_BYTES_MAX) throw unexpectedBody()
    chunks.push(chunk)
  }
  refuseContent(Buffer.concat(chunks))
}

/** An empty object says as little as no body: many libraries send one. */
function refuseContent(bytes: Buffer): void {
  if (bytes.length === 0) return
  const text = bytes.length > NO_BODY_BYTES_MAX ? '' : bytes.toString().trim()
  if (!/^(?:\{\s*\}|null)$/.test(text)) throw unexpectedBody()
}

const unexpectedBody = () => fail('invalid_request', 'This operation takes no body.')

function parseJson(bytes: Buffer): unknown {
  try {
    const text = utf8.decode(bytes)
    const body = JSON.parse(text)
    if (MAY_HOLD_PROTOTYPE.test(text)) refusePrototype(body)
    return body
  } catch (error) {
    throw bodyFault('is not valid JSON', error)
  }
}

const bodyFault = (message: string, cause?: unknown) =>
  fail('invalid_request', { detail: `The body ${message}.`, errors: [{ path: '', message }] }, cause)

/** A key may be written with escapes. */
const MAY_HOLD_PROTOTYPE = /__proto__|\\u/

/** After parsing, and without recursion: a reviver is called for every element, half a second for a body of a megabyte. */
function refusePrototype(body: unknown): void {
  const left = [body]
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value !== 'object' || value === null) continue
    if (Object.hasOwn(value, '__proto__')) throw new SyntaxError('a key that is not allowed')
    for (const child of Object.values(value)) if (typeof child === 'object' && child !== null) left.push(child)
  }
}

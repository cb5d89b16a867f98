// From an operation of the contract and its arguments to what fetch takes. Pure.
import { BASE_PATH, type BodyOf, type Operation, type ParamsOf, type QueryOf } from '../contract/operation.ts'
import { refusedHere } from './errors.ts'

export interface CallOptions {
  signal?: AbortSignal
  headers?: Record<string, string>
  /** For one attempt, until the answer is whole (or has begun, for a stream). 0 for none. */
  timeoutMs?: number
}

/** A body of an operation that takes bytes. A stream cannot be sent twice, so it is never retried. */
export type RawBody = Blob | Uint8Array<ArrayBuffer> | string | ReadableStream<Uint8Array>

type BodyArgument<O extends Operation> = O extends { rawBody: object } ? RawBody : BodyOf<O>
// biome-ignore lint/complexity/noBannedTypes: an operation without parameters needs no argument for them
type Field<Name extends string, T> = {} extends T ? { [K in Name]?: T } : { [K in Name]: T }

export type CallArguments<O extends Operation> = CallOptions &
  Field<'params', ParamsOf<O>> & { query?: QueryOf<O> } & (BodyArgument<O> extends undefined
    ? { body?: undefined }
    : Field<'body', BodyArgument<O>>)

/** The same without the types of one operation, as it is passed on within the client. */
export interface AnyArguments extends CallOptions {
  params?: object
  query?: object
  body?: unknown
}

export interface Prepared {
  url: string
  method: string
  headers: Record<string, string>
  body: BodyInit | null
  /** Whether it may be sent a second time. */
  repeatable: boolean
}

export function prepare(
  baseUrl: string,
  operation: Operation,
  { params = {}, query = {}, body, headers = {} }: AnyArguments,
  fixedHeaders: Record<string, string>,
): Prepared {
  const isStream = body instanceof ReadableStream
  const type = body === undefined ? undefined : (operation.rawBody?.types[0] ?? 'application/json')
  return {
    url: baseUrl + BASE_PATH + fillPath(operation.path, params as Record<string, unknown>) + queryString(query),
    method: operation.method,
    headers: {
      accept: 'application/json',
      ...fixedHeaders,
      ...(type ? { 'content-type': type } : {}),
      // One key for all attempts is what makes a POST safe to repeat.
      ...(operation.method === 'POST' ? { 'idempotency-key': randomKey() } : {}),
      ...lowerCased(headers),
    },
    body: body === undefined ? null : operation.rawBody ? (body as BodyInit) : JSON.stringify(body),
    // PATCH too: in this contract it sets values and never adds to them. What is open to anybody takes no key: a link that was
    // used up by the first attempt would refuse the second, and nobody would know that it had worked.
    repeatable: !isStream && !(operation.isOpen && operation.method === 'POST'),
  }
}

function fillPath(template: string, params: Record<string, unknown>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name]
    // A dot segment would make another path of it on the way.
    if (typeof value !== 'string' || value === '' || value === '.' || value === '..') {
      throw refusedHere(`${name} is not an id.`)
    }
    return encodeURIComponent(value)
  })
}

function queryString(query: object): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null) search.append(name, String(each))
    }
  }
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}

function lowerCased(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** Not `crypto.randomUUID`: browsers keep that from pages that were not loaded over HTTPS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

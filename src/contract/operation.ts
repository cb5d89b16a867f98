// An operation is described once: the route that serves it, the client that calls it, and the document that explains
// it are all made from this.

import type { ErrorCode } from './errors.ts'
import type { Bound } from './operation-bounds.ts'
import type { Static, TSchema } from './schema.ts'
import type { Scope } from './scopes.ts'

export const BASE_PATH = '/v1/game'

export interface Answer {
  description: string
  schema?: TSchema
  /** Other forms that the same answer can take, chosen by `Accept`: an example for each media type. */
  alternatives?: Readonly<Record<string, string>>
  /** The answer is a file's bytes and not JSON. */
  bytes?: boolean
  example?: unknown
}

export interface RawBody {
  /** The media types that it may have; the first is the one that clients send by default. */
  types: readonly [string, ...string[]]
  description: string
  /** Of a body that is text. What is more than this is for the handler to refuse. */
  schema?: TSchema
  example: unknown
}

export interface Operation {
  id: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below BASE_PATH, with `{braces}` around parameters. */
  path: string
  tag: string
  summary: string
  description?: string
  /** Null: any good token may ask, and is told of nothing beyond itself. */
  scope: Scope | null
  /** Anybody may ask, without a token: the operation itself finds out who they are. */
  isOpen?: true
  /** What a request may cost, whatever data its tenant has. */
  bound: Bound
  params?: TSchema
  query?: TSchema
  body?: TSchema
  /** Request headers that mean something here, with what they do. */
  headers?: Readonly<Record<string, string>>
  /** A body that the handler reads itself. */
  rawBody?: RawBody
  bodyExample?: unknown
  answers: Readonly<Record<number, Answer>>
  /** What it can answer beyond the errors that every operation shares. */
  errors: readonly ErrorCode[]
}

export const operation = <const O extends Operation>(spec: O): O => spec

type StaticOr<S, Else> = S extends TSchema ? Static<S> : Else
type SuccessOf<O extends Operation> = O['answers'][keyof O['answers']]

// biome-ignore lint/complexity/noBannedTypes: an operation without parameters has none, which is what {} says
type Nothing = {}

export type ParamsOf<O extends Operation> = O extends { params: infer S } ? StaticOr<S, Nothing> : Nothing
export type QueryOf<O extends Operation> = O extends { query: infer S } ? StaticOr<S, Nothing> : Nothing
export type BodyOf<O extends Operation> = O extends { body: infer S } ? StaticOr<S, undefined> : undefined
export type AnswerOf<O extends Operation> =
  SuccessOf<O> extends infer A ? (A extends { schema: infer S } ? StaticOr<S, undefined> : undefined) : never

/**
 * What any operation can answer. `forbidden` and `not_found` belong to every operation that has a scope, those of the disk
 * even to one that only reads: the activity may have to be written. `server_deleted` belongs to everything that needs a server.
 */
export const SHARED_ERRORS = [
  'invalid_request',
  'unauthenticated',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'server_deleted',
  'rate_limited',
  'headers_too_large',
  'internal',
  'not_ready',
  'disk_read_only',
  'disk_failing',
  'disk_full',
] as const satisfies readonly ErrorCode[]

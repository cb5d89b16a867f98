// An operation as the schema that Fastify validates and @fastify/swagger documents.
import type { FastifySchema } from 'fastify'
import { ERRORS, type ErrorCode } from '../../../contract/errors.ts'
import { type Answer, type Operation, SHARED_ERRORS } from '../../../contract/operation.ts'
import { Closed, Problem } from '../../../contract/schema.ts'
import { PROBLEM_TYPE } from '../../../http/problem.ts'
import { validatorOf } from '../../../http/validation.ts'
import { takingAbsent } from '../absent-fields.ts'

/** For a route without a query: a field in it is refused as an unknown one is anywhere. */
export const NO_QUERY = Closed({})

const described = new WeakMap<Operation, FastifySchema>()

/** The same for every service of a process, whose schemas are then compiled once. */
export function describe(operation: Operation): FastifySchema {
  const known = described.get(operation) ?? schemaOf(operation)
  described.set(operation, known)
  return known
}

function schemaOf(operation: Operation): FastifySchema {
  const { scope, isOpen } = operation
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    description: [operation.description, isOpen ? 'No token.' : scope === null ? 'Any token.' : `Scope: \`${scope}\`.`]
      .filter(Boolean)
      .join('\n\n'),
    security: isOpen ? [] : [{ token: scope === null ? [] : [scope] }, { session: [] }],
    ...(operation.params ? { params: operation.params } : {}),
    querystring: operation.query ?? NO_QUERY,
    ...(operation.body ? { body: withExample(takingAbsent(operation.body), operation.bodyExample) } : {}),
    response: { ...successes(operation), ...failuresOf([...SHARED_ERRORS, ...operation.errors]) },
  } as FastifySchema
}

/** Whether a request without a body is refused: a body that must say something is required. */
export function isBodyRequired({ body }: Operation): boolean {
  return body !== undefined && !validatorOf('body').compile(body)({})
}

function withExample(schema: object, example: unknown): object {
  return example === undefined ? schema : { ...schema, examples: [example] }
}

function successes(operation: Operation): Record<string, object> {
  return Object.fromEntries(Object.entries(operation.answers).map(([status, answer]) => [status, success(answer)]))
}

export const BYTES = { '*/*': { schema: { type: 'string', format: 'binary' } } }

function success(answer: Answer): object {
  if (answer.bytes) return { description: answer.description, content: BYTES }
  if (!answer.schema) return { description: answer.description, type: 'null' }
  const content: Record<string, object> = { 'application/json': { schema: withExample(answer.schema, answer.example) } }
  for (const [type, example] of Object.entries(answer.alternatives ?? {}))
    content[type] = { schema: withExample({ type: 'string' }, example) }
  return { description: answer.description, content }
}

/** One entry a status, naming the codes that it can carry. */
export function failuresOf(errors: readonly ErrorCode[]): Record<string, Failed> {
  const byStatus = Map.groupBy([...new Set(errors)], (code) => ERRORS[code].status)
  return Object.fromEntries([...byStatus].map(([status, group]) => [status, failure(status, group)]))
}

interface Failed {
  description: string
  content: Record<string, { schema: { [keyword: string]: unknown } }>
}

function failure(status: number, codes: ErrorCode[]): Failed {
  const code = codes[0] ?? 'internal'
  const { title } = ERRORS[code]
  const example = {
    type: `urn:gamekeeper:error:${code}`,
    title,
    status,
    detail: `${title}.`,
    code,
    requestId: 'req_01k9zq6m3t8v5w2x7y4c1b6d9e',
  }
  const schema = {
    ...Problem,
    properties: { ...Problem.properties, code: { type: 'string', enum: codes } },
    examples: [example],
  }
  return {
    description: codes.map((name) => `\`${name}\`: ${ERRORS[name].title}`).join('. '),
    content: { [PROBLEM_TYPE]: { schema } },
  }
}

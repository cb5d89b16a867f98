// The OpenAPI document beyond what the generator makes of the routes: schemas by name, which bodies may be left out, the
// header of idempotency keys, and the routes behind links, which the agent serves.

import { LINK_OPERATIONS, type LinkAnswer, type LinkOperation } from '../../../contract/files/link-operations.ts'
import { OPERATIONS } from '../../../contract/index.ts'
import { type Answer, BASE_PATH, type Operation, type RawBody } from '../../../contract/operation.ts'
import { PROBLEM_TYPE } from '../../../http/problem.ts'
import { takingAbsent } from '../absent-fields.ts'
import { BYTES, failuresOf, isBodyRequired } from './openapi.ts'
import { pathExample } from './path-examples.ts'
import { createSchemaNames, type JsonSchema, type SchemaNames } from './schema-names.ts'

interface Media {
  schema?: JsonSchema
  example?: unknown
}
interface Parameter {
  $ref?: string
  name?: string
  in?: string
  example?: unknown
}
interface Described {
  parameters?: Parameter[]
  requestBody?: { required?: boolean; description?: string; content: Record<string, Media> }
  responses: Record<string, { description: string; content?: Record<string, Media> }>
}
interface Document {
  paths?: Record<string, Record<string, unknown> | undefined>
  components?: Record<string, unknown>
}

const JSON_TYPE = 'application/json'

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'A name of your own for the request. The same again with the same body gives the same answer for 24 hours, and does nothing twice.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
}

export function completeDocument(document: Document): void {
  const paths = document.paths ?? {}
  const names = createSchemaNames()
  for (const operation of OPERATIONS) {
    const described = paths[BASE_PATH + operation.path]?.[operation.method.toLowerCase()]
    complete(described as Described, operation, names)
  }
  for (const operation of LINK_OPERATIONS) {
    const path = BASE_PATH + operation.path
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describeLink(operation, names) }
  }
  document.paths = paths
  document.components = {
    ...document.components,
    schemas: names.components(),
    parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
  }
}

function complete(described: Described, operation: Operation, names: SchemaNames): void {
  const { id, body, rawBody, method, isOpen } = operation
  const media = described.requestBody?.content[JSON_TYPE]
  if (body && media) {
    Object.assign(described.requestBody ?? {}, { required: isBodyRequired(operation) })
    nameSchema(media, () => names.body(id, body, takingAbsent(body)))
  }
  for (const parameter of described.parameters ?? [])
    if (parameter.in === 'path') parameter.example = pathExample(parameter.name ?? '')
  if (rawBody) described.requestBody = describeRawBody(rawBody, (schema) => names.body(id, schema, schema))
  if (method === 'POST' && !isOpen)
    described.parameters = [...(described.parameters ?? []), { $ref: '#/components/parameters/IdempotencyKey' }]
  if (operation.headers) described.parameters = [...(described.parameters ?? []), ...headersOf(operation.headers)]
  nameAnswers(described.responses, operation, names)
}

/** One whose name ends in `*` has to be there. */
function headersOf(headers: Readonly<Record<string, string>>): Parameter[] {
  return Object.entries(headers).map(([name, description]) => ({
    name: name.replace('*', ''),
    in: 'header',
    required: name.endsWith('*'),
    description,
    schema: { type: 'string' },
  }))
}

const ANY_BYTES = { type: 'string', format: 'binary' }

function describeRawBody(
  { types, description, schema, example }: RawBody,
  nameOf: (schema: object) => JsonSchema,
): NonNullable<Described['requestBody']> {
  const content = types.map((type) => [type, { schema: schema ? nameOf(schema) : ANY_BYTES, example }])
  return { description, required: schema !== undefined, content: Object.fromEntries(content) }
}

/** From the contract: the generator gives some schemas another form on the way. */
function nameAnswers(
  responses: Described['responses'],
  { id, answers }: Pick<Operation, 'id'> & { answers: Readonly<Record<number, Partial<Answer>>> },
  names: SchemaNames,
): void {
  for (const [status, { content = {} }] of Object.entries(responses)) {
    const schema = answers[Number(status)]?.schema
    if (schema && content[JSON_TYPE]) nameSchema(content[JSON_TYPE], () => names.answer(id, schema))
    for (const type of Object.keys(answers[Number(status)]?.alternatives ?? {}))
      nameSchema(content[type] ?? {}, (form) => form)
    if (content[PROBLEM_TYPE]) nameSchema(content[PROBLEM_TYPE], names.problem)
  }
}

/** The example moves beside the schema, which is the same for many. */
function nameSchema(media: Media, nameOf: (schema: JsonSchema) => JsonSchema): void {
  const { examples = [], ...schema } = media.schema ?? {}
  media.schema = nameOf(schema)
  if (examples.length > 0) media.example = examples[0]
}

function describeLink(operation: LinkOperation, names: SchemaNames): Described & Record<string, unknown> {
  const { id, tag, summary, description, body, answers, errors } = operation
  const responses: Described['responses'] = {
    ...Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, describeAnswer(answer)])),
    ...failuresOf(errors),
  }
  nameAnswers(responses, operation, names)
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description ? { description } : {}),
    security: [],
    parameters: parametersOf(operation),
    ...(body ? { requestBody: { required: false, content: { ...body } } } : {}),
    responses,
  }
}

function parametersOf({ path, query, headers = {} }: LinkOperation): Parameter[] {
  const { properties = {} } = (query ?? {}) as JsonSchema
  return [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
      example: pathExample(name),
    })),
    ...Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: false, schema })),
    ...headersOf(headers),
  ]
}

function describeAnswer({ description, schema, example, bytes, headers = {} }: LinkAnswer) {
  const named = Object.entries(headers).map(([name, text]) => [name, { description: text, schema: { type: 'string' } }])
  const content = schema ? { [JSON_TYPE]: { schema: { ...schema, examples: [example] } as JsonSchema } } : undefined
  return {
    description,
    ...(named.length > 0 ? { headers: Object.fromEntries(named) } : {}),
    ...(bytes ? { content: BYTES } : content ? { content } : {}),
  }
}

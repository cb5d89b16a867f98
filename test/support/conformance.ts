// Holds every answer that the tests see against the OpenAPI document that the service itself serves.
import assert from 'node:assert/strict'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { BASE_PATH } from '../../src/contract/operation.ts'
import { readIfThere } from '../../src/kit/files/kernel-files.ts'
import type { Reply } from './service.ts'

interface MediaType {
  schema: object
}
interface Documented {
  responses: Record<string, { content?: Record<string, MediaType> }>
}
interface Contract {
  paths: { pattern: RegExp; operations: Record<string, Documented> }[]
  ajv: Ajv2020
  compiled: Map<MediaType, ValidateFunction>
}

/** One for the process: whichever service serves the document, it says the same of every answer. */
let loading: Promise<Contract> | undefined

export async function holdAgainstContract(url: string, method: string, path: string, reply: Reply): Promise<void> {
  loading ??= loadContract(url)
  const contract = await loading
  const plain = ((path.startsWith('/v1/') ? path : BASE_PATH + path).split('?', 1)[0] ?? '').replace(/\/$/, '')
  // Neither is an operation: one tells of the path, the other is a GET without its body.
  if (method === 'OPTIONS' || method === 'HEAD') return
  const operation = contract.paths.find(({ pattern }) => pattern.test(plain))?.operations[method.toLowerCase()]
  // A path that the document does not know can only be refused.
  if (!operation)
    return assert.ok(reply.status >= 400 || !plain.startsWith(BASE_PATH) || plain.endsWith('.json'), plain)
  const documented = operation.responses[reply.status]
  assert.ok(documented, `${method} ${plain} answered ${reply.status}, which is not documented: ${reply.text}`)
  const type = reply.headers.get('content-type')?.split(';', 1)[0] ?? ''
  if (!documented.content) return assert.equal(reply.text, '', `${method} ${plain} ${reply.status} has a body`)
  const media = documented.content[type] ?? documented.content['*/*']
  assert.ok(media, `${method} ${plain} ${reply.status} has the undocumented type ${type}`)
  if (!type.endsWith('json') || type.includes('ndjson')) return
  const validate = validatorOf(contract, media)
  assert.ok(
    validate(reply.body),
    `${method} ${plain} ${reply.status}: ${contract.ajv.errorsText(validate.errors)}\n${reply.text}`,
  )
}

function validatorOf({ compiled, ajv }: Contract, media: MediaType): ValidateFunction {
  let validate = compiled.get(media)
  if (!validate) {
    validate = ajv.compile(media.schema)
    compiled.set(media, validate)
  }
  return validate
}

/** Schemas that are referred to by name: so known, each is compiled once, whoever refers to it. */
const NAMED = '#/components/schemas/'

async function loadContract(url: string): Promise<Contract> {
  const text = await documentText(url)
  const document = JSON.parse(text.replaceAll(`"$ref":"${NAMED}`, '"$ref":"named:/')) as {
    paths: Record<string, Record<string, Documented>>
    components: { schemas: Record<string, object> }
  }
  // That the document is a valid one is a test of its own.
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false })
  addFormats.default(ajv)
  for (const [name, schema] of Object.entries(document.components.schemas)) ajv.addSchema(schema, `named:/${name}`)
  // Longer templates first: `/activity/verify` before `/{something}`.
  const templates = Object.keys(document.paths).sort((a, b) => literal(b) - literal(a))
  const paths = templates.map((template) => ({
    pattern: new RegExp(`^${template.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
    operations: document.paths[template] ?? {},
  }))
  return { paths, ajv, compiled: new Map() }
}

const literal = (template: string) => template.replace(/\{\w+\}/g, '').length

/** Building it takes half a second, so one process of a run does it for all. */
async function documentText(url: string): Promise<string> {
  const folder = process.env.GAMEKEEPER_TEST_RUN
  const file = folder && join(folder, 'openapi.json')
  const known = file && readIfThere(file)
  if (known) return known
  const text = await (await fetch(`${url}${BASE_PATH}/openapi.json`)).text()
  if (!file) return text
  writeFileSync(`${file}.${process.pid}`, text)
  renameSync(`${file}.${process.pid}`, file)
  return text
}

// The document against a validator that we did not write, its examples against its schemas, its page in a real browser.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { dereference, validate } from '@readme/openapi-parser'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { type Browser, chromium } from 'playwright-core'
import { LINK_OPERATIONS } from '../../src/contract/files/link-operations.ts'
import { OPERATIONS } from '../../src/contract/index.ts'
import { BASE_PATH, SHARED_ERRORS } from '../../src/contract/operation.ts'
import { SCOPES } from '../../src/contract/scopes.ts'
import { holdAgainstContract } from '../support/conformance.ts'
import { startTestService, type TestService } from '../support/service.ts'

interface Media {
  schema: { $ref?: string; allOf?: [{ $ref: string }, { properties: { code: { enum: string[] } } }] }
  example?: unknown
}
interface Described {
  parameters?: { $ref?: string; name?: string; in?: string; schema?: object; example?: unknown }[]
  operationId: string
  summary: string
  security: Record<string, string[]>[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { description: string; content?: Record<string, Media> }>
}

const CHROMIUM = '/usr/bin/chromium'
let service: TestService
let operations: Map<string, Described>
before(async () => {
  service = await startTestService()
  const document = await load()
  operations = new Map(
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const),
    ),
  )
})
after(() => service.stop())

const load = async () =>
  (await (await fetch(`${service.url}${BASE_PATH}/openapi.json`)).json()) as {
    openapi: string
    components: { schemas: Record<string, object>; parameters: Record<string, { name: string }> }
    paths: Record<string, Record<string, Described>>
  }

test('the document is valid OpenAPI 3.1, by the word of others', async () => {
  const document = await load()
  assert.match(document.openapi, /^3\.1\./)
  const result = await validate(document as never)
  assert.ok(result.valid, JSON.stringify(result, null, 2).slice(0, 3000))
})

test('the validator can say no', async () => {
  const document = await load()
  const path = document.paths[`${BASE_PATH}/servers`] as Record<string, unknown>
  const broken = { ...document, paths: { '/x': { ...path, get: { responses: 7 } } } }
  assert.equal((await validate(broken as never)).valid, false)
})

test('every operation is in it, with an id, a summary, its scope and its errors', () => {
  for (const { id, method, path, scope, isOpen, errors } of OPERATIONS) {
    const described = operations.get(`${method} ${BASE_PATH}${path}`)
    assert.ok(described, id)
    assert.equal(described.operationId, id)
    assert.ok(described.summary.length > 5)
    const credentials = [{ token: scope === null ? [] : [scope] }, { session: [] }]
    assert.deepEqual(described.security, isOpen ? [] : credentials)
    const codes = Object.values(described.responses).flatMap(
      ({ content }) => content?.['application/problem+json']?.schema.allOf?.[1].properties.code.enum ?? [],
    )
    assert.deepEqual(codes.toSorted(), [...new Set([...SHARED_ERRORS, ...errors])].sort(), id)
  }
  assert.equal(operations.size, OPERATIONS.length + LINK_OPERATIONS.length)
  const ids = [...operations.values()].map((operation) => operation.operationId)
  assert.equal(new Set(ids).size, ids.length)
})

test('every operation has examples that its own schemas take', async () => {
  const document = (await dereference((await load()) as never)) as Awaited<ReturnType<typeof load>>
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  let checked = 0
  for (const { id, method, path, body, answers } of OPERATIONS) {
    const described = document.paths[BASE_PATH + path]?.[method.toLowerCase()] as Described
    const media = [
      ...(body ? [['body', described.requestBody?.content['application/json']] as const] : []),
      ...Object.entries(described.responses)
        .filter(([status]) => Number(status) >= 400 || answers[Number(status)]?.schema)
        .map(
          ([status, { content }]) =>
            [status, content?.['application/json'] ?? content?.['application/problem+json']] as const,
        ),
    ]
    for (const [where, one] of media) {
      assert.ok(one, `${id} ${where} has no schema`)
      const { example } = one
      assert.notEqual(example, undefined, `${id} ${where} has no example`)
      assert.ok(ajv.validate(one.schema, example), `${id} ${where}: ${ajv.errorsText()}`)
      checked++
    }
  }
  assert.ok(checked > OPERATIONS.length * 5)
})

test('every operation has an example: of its path, of each form of its body, and of each form of its answer', async () => {
  const document = (await dereference((await load()) as never)) as Awaited<ReturnType<typeof load>>
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { binary: true } })
  addFormats.default(ajv)
  // It takes nothing and answers nothing.
  const withNothing = new Set(['endSession'])
  for (const { id, method, path } of [...OPERATIONS, ...LINK_OPERATIONS]) {
    const described = document.paths[BASE_PATH + path]?.[method.toLowerCase()] as Described
    const { parameters = [], requestBody, responses } = described
    const shown = [
      ...parameters.filter((parameter) => parameter.in === 'path').map((one) => [one.name, one] as const),
      ...Object.entries(requestBody?.content ?? {}),
      ...Object.entries(responses).flatMap(([status, { content = {} }]) =>
        Object.entries(content).flatMap(([type, media]) =>
          type === '*/*' ? [] : [[`${status} ${type}`, media] as const],
        ),
      ),
    ]
    for (const [where, { schema = {}, example }] of shown) {
      assert.notEqual(example, undefined, `${id} ${where} has no example`)
      assert.ok(ajv.validate(schema, example), `${id} ${where}: ${ajv.errorsText()}`)
    }
    assert.equal(
      shown.some(([where]) => !/^[45]/.test(where ?? '')),
      !withNothing.has(id),
      id,
    )
  }
})

test('the examples of streams are what is streamed', async () => {
  const document = (await dereference((await load()) as never)) as Awaited<ReturnType<typeof load>>
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  const { id } = await service.createServer()
  for (const { method, path } of OPERATIONS) {
    const content = document.paths[BASE_PATH + path]?.[method.toLowerCase()]?.responses[200]?.content ?? {}
    const { schema } = content['application/json'] ?? {}
    const { data, nextCursor } = (schema as { properties?: Record<string, { items: object }> })?.properties ?? {}
    const one = (nextCursor && data?.items) ?? schema ?? {}
    for (const [type, media] of Object.entries(content)) {
      const example = String(media.example)
      if (type === 'application/x-ndjson') {
        assert.ok(ajv.validate(one, JSON.parse(example)), `${path}: ${ajv.errorsText()}`)
      } else if (type === 'text/csv') {
        const url = `${service.url}${BASE_PATH}${path.replace('{serverId}', id)}`
        const headers = { authorization: `Bearer ${service.adminToken}`, accept: type }
        const [columns] = (await (await fetch(url, { headers })).text()).split('\r\n')
        assert.equal(example.split('\r\n')[0], columns, path)
      } else if (type === 'text/event-stream') {
        const [, json = ''] = /^(?:id: \S+\n)?event: \w+\ndata: (.*)\n\n$/.exec(example) ?? []
        const event = path.endsWith('/stats') ? (data?.items ?? {}) : one
        assert.ok(ajv.validate(event, JSON.parse(json)), `${path}: ${ajv.errorsText()}`)
      }
    }
  }
})

test('every body and every answer is a schema with a name, and every name is used', async () => {
  const document = await load()
  for (const { operationId, requestBody, responses } of operations.values()) {
    const bodies = Object.entries(requestBody?.content ?? {}).filter(([type]) => type === 'application/json')
    const answers = Object.values(responses).flatMap(({ content = {} }) => Object.entries(content))
    for (const [type, { schema }] of [...bodies, ...answers]) {
      if (!type.endsWith('json') || type.endsWith('ndjson')) continue
      const name = schema.$ref ?? schema.allOf?.[0].$ref
      assert.match(name ?? '', /^#\/components\/schemas\/[A-Z]\w+$/, operationId)
    }
  }
  const text = JSON.stringify(document)
  for (const name of Object.keys(document.components.schemas))
    assert.ok(text.includes(`"#/components/schemas/${name}"`), `${name} is not used`)
  for (const name of ['Server', 'NewServer', 'ServerPage', 'Backup', 'FileEntry', 'Job', 'Problem', 'Token'])
    assert.ok(document.components.schemas[name], name)
})

test('Idempotency-Key is there where it is taken, and nowhere else', async () => {
  const { components } = await load()
  assert.equal(components.parameters.IdempotencyKey?.name, 'Idempotency-Key')
  for (const { id, method, path, isOpen } of OPERATIONS) {
    const { parameters = [] } = operations.get(`${method} ${BASE_PATH}${path}`) ?? {}
    const takes = parameters.some(({ $ref }) => $ref === '#/components/parameters/IdempotencyKey')
    assert.equal(takes, method === 'POST' && !isOpen, id)
  }
})

test('the routes behind links are in it, need no token and exist', async () => {
  for (const { id, method, path, errors } of LINK_OPERATIONS) {
    const described = operations.get(`${method} ${BASE_PATH}${path}`)
    assert.ok(described, id)
    assert.deepEqual([described.operationId, described.security], [id, []])
    const codes = Object.values(described.responses).flatMap(
      ({ content }) => content?.['application/problem+json']?.schema.allOf?.[1].properties.code.enum ?? [],
    )
    assert.deepEqual(codes.toSorted(), [...new Set(errors)].sort(), id)
    const url = service.url + BASE_PATH + path.replace(/\{\w+\}/g, 'x')
    const answer = await fetch(url, { method, headers: { 'tus-resumable': '1.0.0' } })
    assert.equal(answer.status, 404, id)
    if (method !== 'HEAD') assert.match((await answer.json()).detail, /^The link is not valid/, id)
  }
})

test('nothing is in it that does not exist yet: every scope is needed by something', () => {
  const needed = new Set(OPERATIONS.map(({ scope }) => scope))
  // Setting the limits of a server needs `servers:admin` beside the scope of the operation.
  assert.deepEqual(
    SCOPES.filter((scope) => !needed.has(scope)),
    ['servers:admin'],
  )
})

test('an answer that is not as documented is found', async () => {
  const server = await service.createServer()
  const path = `/servers/${server.id}`
  const good = await service.call('GET', path)
  const hold = (change: object) => holdAgainstContract(service.url, 'GET', path, { ...good, ...change })
  await hold({})
  await assert.rejects(hold({ body: { ...good.body, port: 'x' } }), /port/)
  const { name: _, ...nameless } = good.body
  await assert.rejects(hold({ body: nameless }), /name/)
  await assert.rejects(hold({ status: 418 }), /not documented/)
  await assert.rejects(hold({ headers: new Headers({ 'content-type': 'text/html' }) }), /undocumented type/)
  await assert.rejects(holdAgainstContract(service.url, 'GET', '/nowhere', good))
})

test('the reference page works in a browser, talks to nobody else and complains of nothing', async (t) => {
  if (!existsSync(CHROMIUM)) return t.skip('no Chromium: run the tests with npm test')
  const flags =
    '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync'
  const browser: Browser = await chromium.launch({ executablePath: CHROMIUM, args: flags.split(' ') })
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
    const complaints: string[] = []
    const elsewhere: string[] = []
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(String(error)))
    page.on('request', (request) => {
      const url = request.url()
      if (!url.startsWith(service.url) && !/^(data|blob):/.test(url)) elsewhere.push(url)
    })
    await page.goto(`${service.url}/docs`)
    await page.getByText('Create a server').first().waitFor()
    await page.getByText('Activity', { exact: true }).first().click()
    await page.getByText("Read a server's activity").first().waitFor()
    if (process.env.GAMEKEEPER_TEST_SCREENSHOT) await page.screenshot({ path: process.env.GAMEKEEPER_TEST_SCREENSHOT })
    assert.deepEqual(complaints, [])
    assert.deepEqual(elsewhere, [])
  } finally {
    await browser.close()
  }
})

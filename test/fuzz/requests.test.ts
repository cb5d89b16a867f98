// Thousands of arbitrary requests at every route of the contract: whatever arrives, the answer is never a 5xx.
import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { OPERATIONS } from '../../src/contract/index.ts'
import { BASE_PATH, type Operation } from '../../src/contract/operation.ts'
import { onBothEngines } from '../support/engines.ts'
import { startTestService, type TestService } from '../support/service.ts'

const REQUESTS = Number(process.env.GAMEKEEPER_TEST_FUZZ ?? 4000)

interface Wild {
  params: string[]
  query: [string, string][]
  body: string | Buffer | undefined
  headers: Record<string, string>
}

const nasty = fc.constantFrom(
  '\u0000',
  '%',
  '_',
  '\\',
  "'",
  '"; drop table servers; --',
  '..',
  '../../etc/passwd',
  '=1+1',
  '-1',
  '1e999',
  'NaN',
  'null',
  '[]',
  '{}',
  '\ud800',
  '\u202e',
  '\uffff',
  '🐴',
  '__proto__',
  'constructor',
  ' ',
  '\n',
  'gk_x_y',
  '*',
  '',
  '9007199254740993',
  '2016-12-31T23:59:60Z',
  '9999-12-31T23:59:59-23:59',
  'act_0',
  'x'.repeat(300),
)
const text = fc.oneof(nasty, fc.string({ unit: 'binary', maxLength: 40 }), fc.string({ maxLength: 20 }))

/** Values that nearly fit a schema: mostly what it asks for, now and then something else. */
function near(schema: Record<string, unknown>): fc.Arbitrary<unknown> {
  const type = [schema.type].flat()[0]
  const wild: fc.Arbitrary<unknown> = fc.oneof(fc.jsonValue({ maxDepth: 3 }), text)
  const options = (schema.anyOf ?? schema.oneOf) as Record<string, unknown>[] | undefined
  if (options) return fc.oneof(...options.map(near), wild)
  if (schema.enum) return fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...(schema.enum as unknown[])) }, wild)
  if (type === 'object') return nearObject(schema, wild)
  if (type === 'array') {
    const items = near((schema.items ?? {}) as Record<string, unknown>)
    return fc.oneof({ weight: 4, arbitrary: fc.array(items, { maxLength: 4 }) }, wild)
  }
  if (type === 'integer' || type === 'number') {
    return fc.oneof(fc.integer({ min: 0, max: 70_000 }), fc.maxSafeInteger(), fc.double(), wild)
  }
  if (schema.format === 'date-time') {
    const times = fc
      .date({ min: new Date(0), max: new Date(8e15), noInvalidDate: true })
      .map((date) => date.toISOString())
    return fc.oneof({ weight: 3, arbitrary: times }, wild)
  }
  return fc.oneof({ weight: 3, arbitrary: text }, wild)
}

function nearObject(schema: Record<string, unknown>, wild: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const properties = (schema.properties ?? {}) as Record<string, Record<string, unknown>>
  const fields = Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, near(field)]))
  const record = fc.record(fields, { requiredKeys: [] })
  const extra = fc
    .tuple(record, fc.dictionary(text, wild, { maxKeys: 2 }))
    .map(([known, more]) => ({ ...known, ...more }))
  return fc.oneof({ weight: 6, arbitrary: record }, { weight: 2, arbitrary: extra }, wild)
}

const schemaOf = (schema: unknown) => (schema ?? {}) as Record<string, unknown>

function requestsFor(operation: Operation, known: Record<string, string[]>): fc.Arbitrary<Wild> {
  const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
  const params = names.map((name) =>
    fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...(known[name] ?? ['none'])) }, text),
  )
  const queries = Object.entries(schemaOf(schemaOf(operation.query).properties)).map(([name, schema]) =>
    near(schemaOf(schema)).map((value): [string, string] => [
      name,
      typeof value === 'string' ? value : String(JSON.stringify(value)),
    ]),
  )
  const query = queries.length > 0 ? fc.array(fc.oneof(...queries), { maxLength: 3 }) : fc.constant([])
  const wildQuery = fc.array(fc.tuple(text, text), { maxLength: 2 })
  const fitting = operation.body
    ? near(schemaOf(operation.body)).map((value) => JSON.stringify(value))
    : fc.constant(undefined)
  const bytes = fc.uint8Array({ maxLength: 64 }).map((array) => Buffer.from(array))
  const headers = fc.record(
    {
      accept: fc.constantFrom(
        '*/*',
        'text/csv',
        'application/x-ndjson',
        'nonsense',
        'text/csv;q=x',
        ',,;;',
        'application/json;q=0',
      ),
      'content-type': fc.constantFrom(
        'application/json',
        'application/json; charset=utf-16',
        'text/plain',
        'a/b/c',
        '',
      ),
      'idempotency-key': fc.constantFrom('a', 'b', 'ü', 'x'.repeat(256), ''),
      'last-event-id': fc.constantFrom('act_0', 'x', ''),
      'user-agent': fc.constantFrom('x', '\u00ff', 'y'.repeat(3000)),
      'x-gamekeeper-client': fc.constantFrom('cli', 'system', 'link'),
      'x-forwarded-for': fc.constantFrom('1.2.3.4', 'nonsense', ',,'),
    },
    { requiredKeys: [] },
  )
  return fc.record({
    params: fc.tuple(...params),
    query: fc.oneof({ weight: 4, arbitrary: query }, wildQuery) as fc.Arbitrary<[string, string][]>,
    body: fc.oneof({ weight: 6, arbitrary: fitting }, text, bytes, fc.constant(undefined)),
    headers,
  })
}

function pathOf(operation: Operation, { params, query }: Wild): string {
  let next = 0
  const path = operation.path.replace(/\{\w+\}/g, () => encode(params[next++] ?? ''))
  const search = query.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&')
  return BASE_PATH + path + (search ? `?${search}` : '')
}

/** As encodeURIComponent, and it takes lone surrogates too. */
const encode = (value: string) => encodeURIComponent(value.toWellFormed())

onBothEngines('fuzz', (engine) => {
  let service: TestService
  const known: Record<string, string[]> = {}
  const seen = new Set<number>()
  before(async () => {
    service = await startTestService({ engine })
    const [server, other] = [await service.createServer(), await service.createServer()]
    const token = await service.mint(['servers:read'])
    const doomed = await service.createServer()
    const job = (await service.call('DELETE', `/servers/${doomed.id}`, { body: { name: doomed.name } })).body
    Object.assign(known, {
      serverId: [server.id, other.id, doomed.id],
      tokenId: [token.id, 'tok_none'],
      jobId: [job.id],
    })
  })
  after(() => service.stop())

  function send(operation: Operation, wild: Wild): Promise<{ status: number; text: string }> {
    const headers = {
      authorization: `Bearer ${service.adminToken}`,
      'content-type': 'application/json',
      ...wild.headers,
    }
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        service.url,
        { path: pathOf(operation, wild), method: operation.method, headers },
        (response) => {
          let body = ''
          response.setEncoding('utf8').on('data', (chunk: string) => {
            body += chunk
          })
          response.on('end', () => resolve({ status: response.statusCode ?? 0, text: body }))
        },
      )
      request.on('error', reject)
      request.end(wild.body)
    })
  }

  for (const operation of OPERATIONS) {
    test(`${operation.id} never answers 5xx`, async () => {
      const property = fc.asyncProperty(requestsFor(operation, known), async (wild) => {
        const { status, text: answer } = await send(operation, wild)
        seen.add(status)
        assert.ok(status >= 200 && status < 500, `${status}: ${answer}`)
        assert.doesNotMatch(answer, /node_modules/)
      })
      await fc.assert(property, { numRuns: Math.ceil(REQUESTS / OPERATIONS.length / 2) })
    })
  }

  test('the requests went further than the first check', () => {
    for (const status of [200, 400, 404]) assert.ok(seen.has(status), `${status} was never reached`)
  })

  test('the service still works, and its activity is whole', async () => {
    assert.equal((await service.call('GET', `/servers?limit=1`)).status, 200)
    assert.equal((await service.call('GET', '/activity/verify')).body.intact, true)
  })
})

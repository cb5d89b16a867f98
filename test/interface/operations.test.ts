// Every operation of the contract, asked in every way that a client of another panel might ask it, and in ways that must
// be refused without changing anything.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { OPERATIONS } from '../../src/contract/index.ts'
import { BASE_PATH, type Operation } from '../../src/contract/operation.ts'
import { createMirrorPlace } from '../support/mirror.ts'
import { addressOf, createThings, OPERATIONS_ENV, UNASKABLE, type Wanted, wantedFor } from '../support/operations.ts'
import { sendRaw } from '../support/raw.ts'
import { type SendOptions, send } from '../support/send.ts'
import { type Reply, startTestService, type TestService } from '../support/service.ts'

interface Field {
  type?: string | string[]
  anyOf?: Field[]
}
interface Body {
  properties: Record<string, Field>
  required?: string[]
  /** Of several optional fields one must be given. */
  minProperties?: number
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const JSON_TYPE = { 'content-type': 'application/json' }
const schemaOf = (operation: Operation) => operation.body as unknown as Body
const optionalFields = (operation: Operation) =>
  Object.keys(schemaOf(operation).properties).filter((name) => !schemaOf(operation).required?.includes(name))

/** The methods that the path of an address takes, by the contract alone. */
function methodsOf(address: string): string[] {
  const path = address.split('?', 1)[0] ?? ''
  const fitting = OPERATIONS.filter((operation) =>
    new RegExp(`^${BASE_PATH}${operation.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(path),
  ).map(({ method }) => method as string)
  return [...new Set(fitting)]
}

const withSlash = (address: string) => address.replace(/(?=\?|$)/, '/')
const withQuery = (address: string, field: string) => `${address}${address.includes('?') ? '&' : '?'}${field}`

// On one engine: what is refused here is refused before a database is asked, and each part is tested on both by itself.
describe('every operation', () => {
  const place = createMirrorPlace()
  let service: TestService
  let things: ReturnType<typeof createThings>
  let required: Map<string, boolean | undefined>
  before(async () => {
    service = await startTestService({ env: OPERATIONS_ENV, mirror: place.target })
    things = createThings(service)
    const document = (await service.call('GET', `${BASE_PATH}/openapi.json`)).body
    required = new Map(
      OPERATIONS.map(({ id, path, method }) => [
        id,
        document.paths[BASE_PATH + path][method.toLowerCase()].requestBody?.required,
      ]),
    )
  })
  after(async () => {
    await service.stop()
    place.remove()
  })

  const ask = (operation: Operation, wanted: Wanted, change: (address: string) => string = (address) => address) => {
    const { body } = wanted
    const options: SendOptions =
      body === undefined
        ? {}
        : typeof body === 'string'
          ? { body, headers: { 'content-type': operation.rawBody?.types[0] ?? 'application/octet-stream' } }
          : { body: JSON.stringify(body), headers: JSON_TYPE }
    return send(service, operation.method, change(addressOf(operation, wanted)), options)
  }
  const fresh = async (operation: Operation, change: (wanted: Wanted) => Wanted = (wanted) => wanted) =>
    ask(operation, change(await wantedFor(operation, things)))

  /** Everything that a change would show in, and nothing of what earlier tests have left to be done. */
  async function world({ serverId }: { serverId?: string } = {}): Promise<string> {
    const own = [`/servers/${serverId}/activity`, `/files/${serverId}`, `/files/${serverId}/trash`]
    const paths = ['/tokens', '/activity?event=server.created', ...(serverId ? own : [])]
    const replies = await Promise.all(paths.map((path) => service.call('GET', path)))
    return JSON.stringify(replies.map(({ status, body }) => (status < 300 ? body : body.code))).replace(
      /"lastUsedAt":[^,}]*/g,
      '',
    )
  }

  function isRefused(
    reply: Pick<Reply, 'status' | 'text' | 'body'>,
    status: number,
    code: string,
    field?: string,
  ): void {
    assert.deepEqual([reply.status, reply.body.code], [status, code], reply.text)
    if (field !== undefined)
      assert.ok(
        reply.body.errors.some((fault: { path: string }) => fault.path === field),
        `${reply.text} names ${field}`,
      )
  }

  for (const operation of OPERATIONS)
    describe(operation.id, { skip: UNASKABLE[operation.id] ?? false }, () => {
      test('an unknown query field, an unknown body field and other methods are refused, and nothing changes', async () => {
        const wanted = await wantedFor(operation, things)
        const before = await world(wanted.params)
        isRefused(await ask(operation, wanted, (at) => withQuery(at, 'colour=red')), 400, 'invalid_request', '/colour')
        if (!operation.rawBody) {
          const body = { ...((wanted.body as object | undefined) ?? {}), colour: 'red' }
          isRefused(await ask(operation, { ...wanted, body }), 400, 'invalid_request')
        }
        const address = addressOf(operation, wanted)
        const allowed = methodsOf(address)
        for (const method of METHODS.filter((each) => !allowed.includes(each))) {
          const reply = await send(service, method, address, { token: null })
          isRefused(reply, 405, 'method_not_allowed')
          const allow = (reply.headers.get('allow') ?? '').split(', ')
          const expected = [...allowed, 'OPTIONS', ...(allowed.includes('GET') ? ['HEAD'] : [])]
          assert.deepEqual(allow.toSorted(), expected.toSorted(), method)
        }
        assert.equal(await world(wanted.params), before)
      })

      test('a trailing slash is the same path', async () => {
        const plain = await fresh(operation)
        assert.ok(plain.status < 300 || plain.body.code === 'job_finished', plain.text)
        const slashed = await ask(operation, await wantedFor(operation, things), withSlash)
        assert.deepEqual([slashed.status, slashed.body.code], [plain.status, plain.body.code], slashed.text)
      })

      if (operation.rawBody || operation.body)
        test('nothing at all is refused exactly where the document says that a body is required', async () => {
          for (const header of ['x-none: 1', 'content-length: 0', 'content-type: application/json']) {
            const wanted = await wantedFor(operation, things)
            const before = await world(wanted.params)
            const address = addressOf(operation, wanted)
            const lines = [`${operation.method} ${address} HTTP/1.1`, 'host: test', header]
            const authorization = `authorization: Bearer ${service.adminToken}`
            const reply = await sendRaw(service.url, [...lines, authorization, '\r\n'].join('\r\n'))
            assert.ok(reply.status < 500, reply.text)
            assert.equal(required.get(operation.id), reply.status === 400, reply.text)
            if (reply.status !== 400) continue
            isRefused(reply, 400, 'invalid_request')
            assert.ok(reply.body.errors.length > 0)
            if (operation.rawBody) assert.deepEqual(reply.body.errors, [{ path: '', message: 'is required' }])
            assert.equal(await world(wanted.params), before)
          }
        })

      if (operation.rawBody) return
      if (!operation.body) {
        test('no body, an empty one, {} and null are the same', async () => {
          assert.equal(required.get(operation.id), undefined)
          const plain = await fresh(operation)
          for (const [body, type] of [
            ['', 'application/json'],
            ['{}', 'application/json'],
            [' { }\n', 'text/plain'],
            ['null', 'application/x-www-form-urlencoded'],
          ] as const) {
            const address = addressOf(operation, await wantedFor(operation, things))
            const reply = await send(service, operation.method, address, { body, headers: { 'content-type': type } })
            assert.deepEqual([reply.status, reply.body.code], [plain.status, plain.body.code], `${body}: ${reply.text}`)
          }
        })
        return
      }

      test('no body and {} are refused exactly where the document says that one is required', async () => {
        for (const body of [undefined, '{}']) {
          const wanted = await wantedFor(operation, things)
          const before = await world(wanted.params)
          const options = body === undefined ? {} : { body, headers: JSON_TYPE }
          const reply = await send(service, operation.method, addressOf(operation, wanted), options)
          assert.equal(required.get(operation.id), reply.status === 400, reply.text)
          if (reply.status !== 400) assert.ok(reply.status < 300, reply.text)
          else {
            isRefused(reply, 400, 'invalid_request')
            assert.ok(reply.body.errors.length > 0)
            assert.equal(await world(wanted.params), before)
          }
        }
      })

      test('null for an optional field is taken, for a required one it is refused and named', async () => {
        for (const name of optionalFields(operation)) {
          const wanted = await wantedFor(operation, things)
          const body = { ...(wanted.body as object), [name]: null }
          const given = Object.values(body).filter((value) => value !== null).length
          const reply = await ask(operation, { ...wanted, body })
          if (given < (schemaOf(operation).minProperties ?? 0)) isRefused(reply, 400, 'invalid_request')
          else assert.ok(reply.status < 300, `${name}: ${reply.text}`)
        }
        for (const name of schemaOf(operation).required ?? []) {
          const wanted = await wantedFor(operation, things)
          const before = await world(wanted.params)
          const body = { ...(wanted.body as object), [name]: null }
          isRefused(await ask(operation, { ...wanted, body }), 400, 'invalid_request', `/${name}`)
          assert.equal(await world(wanted.params), before)
        }
      })
    })
})

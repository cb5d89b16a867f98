import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestService } from '../../test/support/service.ts'
import { type Scripted, startProxy, startScripted } from '../../test/support/unreliable.ts'
import { backOffMs, readRetryAfter } from './backoff.ts'
import { ApiError, createClient, isApiError, TransportError } from './index.ts'

const problem = (status: number, code: string): Scripted => ({
  status,
  body: { type: 'about:blank', title: code, status, detail: 'Not now.', code, requestId: 'req_1' },
})
const page: Scripted = { status: 200, body: { data: [], nextCursor: null } }
const clientOf = ({ url }: { url: string }, retries?: number) =>
  createClient({ baseUrl: url, token: 'gk_x', ...(retries === undefined ? {} : { retries }) })

for (const fault of ['cut', 'half', { status: 502, body: '<html>' }, problem(503, 'agent_unreachable')] as const) {
  test(`a read is repeated after ${typeof fault === 'string' ? fault : fault.status}`, async () => {
    await using server = await startScripted([fault, fault, page])
    assert.deepEqual(await clientOf(server).servers.list(), { data: [], nextCursor: null })
    assert.equal(server.seen.length, 3)
  })
}

test('Every POST carries an Idempotency-Key, the same for each attempt.', async () => {
  await using server = await startScripted(['cut', problem(503, 'not_ready'), { status: 201, body: { id: 'srv_1' } }])
  const client = clientOf(server)
  await client.servers.create({ name: 'Castle' })
  await client.servers.create({ name: 'Castle' })
  const keys = server.seen.map(({ headers }) => headers['idempotency-key'])
  assert.equal(server.seen.length, 4)
  assert.match(String(keys[0]), /^[0-9a-f]{32}$/)
  assert.equal(new Set(keys.slice(0, 3)).size, 1)
  assert.notEqual(keys[3], keys[0])
  assert.deepEqual(new Set(server.seen.map(({ body }) => body)), new Set(['{"name":"Castle"}']))
})

test('a POST whose answer was lost is carried out once by the service', async () => {
  await using service = await startTestService()
  await using proxy = await startProxy(service.url)
  let lost = 0
  // The request reaches the service and is answered; the answer is thrown away on its way back.
  const losing: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    if (lost++ > 0) return response
    await response.arrayBuffer()
    throw new TypeError('fetch failed')
  }
  const client = createClient({ baseUrl: proxy.url, token: service.adminToken, fetch: losing })
  const server = await client.servers.create({ name: 'Only one' })
  assert.equal(lost, 2)
  const all = await client.servers.list({ q: 'Only one' })
  assert.deepEqual(all.data, [server])
})

test('From the second attempt on, error.attempts says that an earlier one may have done what was asked', async () => {
  await using server = await startScripted(['cut'])
  await assert.rejects(clientOf(server, 2).servers.list(), (error) => {
    assert.ok(error instanceof TransportError)
    assert.deepEqual([error.fault, error.attempts], ['network', 3])
    return true
  })
  assert.equal(server.seen.length, 3)
  await assert.rejects(clientOf(server, 0).servers.list(), TransportError)
  assert.equal(server.seen.length, 4)
})

test('other refusals are not repeated', async () => {
  const refusals = {
    400: 'invalid_request',
    401: 'unauthenticated',
    404: 'not_found',
    409: 'server_busy',
    500: 'internal',
  }
  for (const [status, code] of Object.entries(refusals)) {
    await using server = await startScripted([problem(Number(status), code)])
    await assert.rejects(clientOf(server).servers.read('srv_1'), ApiError)
    assert.equal(server.seen.length, 1, code)
  }
})

test('429 is repeated no sooner than Retry-After says, and not at all when that is too long', async () => {
  const limited = problem(429, 'rate_limited') as Exclude<Scripted, string>
  await using server = await startScripted([{ ...limited, headers: { 'retry-after': '1' } }, page])
  await clientOf(server).servers.list()
  const [first, second] = server.seen
  assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= 1000)
  await using strict = await startScripted([{ ...limited, headers: { 'retry-after': '3600' } }])
  await assert.rejects(clientOf(strict).servers.list(), (error) => {
    return isApiError(error, 'rate_limited') && error.retryAfterMs === 3600_000
  })
  assert.equal(strict.seen.length, 1)
})

test('an answer that does not come is a timeout', async () => {
  await using server = await startScripted(['never'])
  // On a busy machine the time may be over before a request is seen.
  let asked = 0
  const counted: typeof fetch = (input, init) => {
    asked++
    return fetch(input, init)
  }
  const client = createClient({ baseUrl: server.url, retries: 0, timeoutMs: 200, fetch: counted })
  await assert.rejects(client.servers.list(), (error) => error instanceof TransportError && error.fault === 'timeout')
  assert.equal(asked, 1)
})

test('an abort ends the waiting between attempts', async () => {
  const limited = problem(429, 'rate_limited') as Exclude<Scripted, string>
  await using server = await startScripted([{ ...limited, headers: { 'retry-after': '30' } }])
  const stop = new AbortController()
  const listing = createClient({
    baseUrl: server.url,
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      setImmediate(() => stop.abort())
      return response
    },
  }).servers.list({}, { signal: stop.signal })
  await assert.rejects(listing, { name: 'AbortError' })
})

test('a stream as body is sent once only', async () => {
  await using server = await startScripted([problem(503, 'not_ready')])
  const operation = {
    id: 'put',
    method: 'PUT',
    path: '/x',
    tag: 'x',
    summary: 'x',
    scope: '*',
    bound: { heldBytes: 0, turnMs: 0, by: 'nothing' },
    rawBody: { types: ['application/octet-stream'], description: 'bytes', example: 'bytes' },
    answers: { 204: { description: 'x' } },
    errors: [],
  } as const
  await assert.rejects(clientOf(server).call(operation, { body: new Blob(['bytes']).stream() }), ApiError)
  assert.deepEqual(
    server.seen.map(({ body, headers }) => [body, headers['content-type']]),
    [['bytes', 'application/octet-stream']],
  )
})

test('back-off doubles, is bounded and jittered', () => {
  assert.deepEqual(
    [1, 2, 3].map((n) => backOffMs(n, 200, () => 1)),
    [200, 400, 800],
  )
  assert.equal(
    backOffMs(1, 200, () => 0),
    100,
  )
  assert.equal(
    backOffMs(50, 200, () => 1),
    10_000,
  )
})

test('Retry-After is seconds or a date', () => {
  const now = Date.parse('2026-11-15T00:00:00Z')
  assert.equal(readRetryAfter('7', now), 7000)
  assert.equal(readRetryAfter('Sun, 15 Nov 2026 00:00:09 GMT', now), 9000)
  assert.equal(readRetryAfter('Sun, 15 Nov 2020 00:00:09 GMT', now), 0)
  assert.equal(readRetryAfter('soon', now), null)
  assert.equal(readRetryAfter(null, now), null)
})

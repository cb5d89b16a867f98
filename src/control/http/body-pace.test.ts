import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { sendRaw } from '../../../test/support/raw.ts'
import { startTestService } from '../../../test/support/service.ts'
import { isFailure } from '../../contract/errors.ts'
import { LARGE_BODIES } from '../../contract/fixed-limits.ts'
import { createBodyPace } from './body-pace.ts'

const MIB = 1024 * 1024

test('large bodies of one token are read at their pace; beyond those that may wait they are refused', () => {
  let time = 0
  const pace = createBodyPace(true, () => time)
  assert.equal(pace.turnOf('a', MIB), undefined, 'the first is read at once')
  const waiting = Math.floor((LARGE_BODIES.waitMs * LARGE_BODIES.bytesPerSecond) / 1000 / MIB)
  for (let count = 0; count < waiting; count++) assert.ok(pace.turnOf('a', MIB) instanceof Promise)
  assert.throws(
    () => pace.turnOf('a', MIB),
    (error) => isFailure(error, 'rate_limited') && Number(error.headers?.['retry-after']) >= 1,
  )
  assert.equal(pace.turnOf('a', LARGE_BODIES.bytes), undefined, 'small ones are not touched by it')
  assert.equal(pace.turnOf('b', MIB), undefined, 'and neither is another token')
  time += ((waiting + 1) * 1000 * MIB) / LARGE_BODIES.bytesPerSecond
  assert.equal(pace.turnOf('a', MIB), undefined)
})

test('a token cannot keep the service busy with large bodies', async () => {
  await using service = await startTestService({ env: { GAMEKEEPER_RATE_LIMIT: '6000' } })
  const { id } = await service.createServer()
  const [noisy, quiet] = [await service.mint(['files:write']), await service.mint(['files:write'])]
  const pack = ({ token }: { token: string }) =>
    service.call('POST', `/files/${id}/pack`, { token, body: { files: [], padding: 'x'.repeat(900_000) } })
  const replies = await Promise.all(Array.from({ length: 24 }, () => pack(noisy)))
  const refused = replies.filter(({ status }) => status === 429)
  assert.ok(refused.length > 0)
  for (const { body, headers } of refused)
    assert.deepEqual([body.code, Number(headers.get('retry-after')) >= 1], ['rate_limited', true])
  assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([400, 429]))
  assert.equal((await pack(quiet)).status, 400)
})

test('a large body is refused before it is read, by what its header says, and its client can read why', async (t) => {
  await using service = await startTestService({ env: { GAMEKEEPER_RATE_LIMIT: '6000' } })
  const { id } = await service.createServer()
  const { token } = await service.mint(['files:write'])
  const body = { files: [], padding: 'x'.repeat(900_000) }
  // However long a busy machine takes to answer, they all come at once.
  const now = performance.now()
  t.mock.method(performance, 'now', () => now)
  const replies = Array.from({ length: 10 }, () => service.call('POST', `/files/${id}/pack`, { token, body }))
  // From the first that is refused on, there is no room for another.
  const isRefused = async (reply: (typeof replies)[number]) => assert.equal((await reply).status, 429)
  await Promise.any(replies.map(isRefused))
  const head = [
    `POST /v1/game/files/${id}/pack HTTP/1.1`,
    'host: localhost',
    `authorization: Bearer ${token}`,
    'content-type: application/json',
    'content-length: 900000',
  ]
  const { status, body: problem, headers } = await sendRaw(service.url, `${head.join('\r\n')}\r\n\r\n`)
  assert.deepEqual([status, problem.code, headers.get('connection')], [429, 'rate_limited', 'close'])
  await Promise.all(replies)
})

/** Twice as many as may wait if each counted as a large one. */
const LATER = (2 * LARGE_BODIES.waitMs * LARGE_BODIES.bytesPerSecond) / 1000 / LARGE_BODIES.bytes

const chunkedHead = (id: string, token: string) =>
  [
    `POST /v1/game/files/${id}/folder HTTP/1.1`,
    'host: localhost',
    `authorization: Bearer ${token}`,
    'content-type: application/json',
    'transfer-encoding: chunked',
    '',
    '',
  ].join('\r\n')

test('small bodies that are sent in chunks count as what arrives, whether they come with their headers or later', async (t) => {
  await using service = await startTestService({ env: { GAMEKEEPER_RATE_LIMIT: '6000' } })
  const { id } = await service.createServer()
  const { token } = await service.mint(['files:write'])
  const body = '19\r\n{"path":"/","name":"one"}\r\n0\r\n\r\n'
  const statuses = async (send: () => Promise<{ status: number }>) => {
    const replies = await Promise.all(Array.from({ length: 40 }, send))
    return new Set(replies.map(({ status }) => status))
  }
  assert.deepEqual(await statuses(() => sendRaw(service.url, chunkedHead(id, token) + body)), new Set([200, 201]))
  // However long a busy machine takes to answer, they all come at once.
  const now = performance.now()
  t.mock.method(performance, 'now', () => now)
  for (let count = 0; count < LATER; count++) await sendLater(service.url, chunkedHead(id, token), body)
})

/** The body is sent when the service has read the headers. */
async function sendLater(url: string, head: string, body: string): Promise<void> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(head.replace('host:', 'expect: 100-continue\r\nhost:'))
  assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 100 /)
  socket.write(body)
  assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 200 /)
  socket.destroy()
}

test('a body that waits for its turn waits no longer when its client has left', async () => {
  const pace = createBodyPace(true)
  const client = new AbortController()
  assert.equal(pace.turnOf('a', MIB), undefined)
  const waiting = pace.turnOf('a', MIB, client.signal)
  const left = new Error('left')
  client.abort(left)
  await assert.rejects(async () => await waiting, left)
})

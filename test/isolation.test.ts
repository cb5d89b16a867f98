// A token for server A learns nothing of server B: on every route that names a server, B answers as one that never was.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { OPERATIONS } from '../src/contract/index.ts'
import type { Operation } from '../src/contract/operation.ts'
import { onBothEngines } from './support/engines.ts'
import { sendRaw } from './support/raw.ts'
import { startTestService, type TestService } from './support/service.ts'

const NEVER = 'srv_00000000000000000000000000'
const OF_A_SERVER = OPERATIONS.filter((operation) => operation.path.includes('{serverId}'))

onBothEngines('A server that a token cannot see is indistinguishable from one that does not exist.', (engine) => {
  let service: TestService
  let theirs: string
  let token: string
  before(async () => {
    service = await startTestService({ engine })
    const mine = await service.createServer()
    theirs = (await service.createServer({ name: 'Theirs' })).id
    token = (await service.mint(['*'], [mine.id])).token
  })
  after(() => service.stop())

  const pathFor = (operation: Operation, serverId: string) =>
    operation.path.replace('{serverId}', serverId).replace(/\{\w+\}/g, 'x_none')

  /** The answer with what differs from one request to the next taken out. */
  async function answer(operation: Operation, serverId: string, body: string, headers: string[] = []): Promise<string> {
    const head = [
      `${operation.method} /v1/game${pathFor(operation, serverId)} HTTP/1.1`,
      'host: test',
      `authorization: Bearer ${token}`,
      ...(body ? ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`] : []),
      ...headers,
    ]
    const reply = await sendRaw(service.url, `${head.join('\r\n')}\r\n\r\n${body}`)
    const requestId = reply.headers.get('x-request-id') ?? ''
    assert.equal(reply.status, 404, reply.text)
    const shown = [...reply.headers].map(([name, value]) => (name === 'date' ? [name, ''] : [name, value]))
    return JSON.stringify([reply.status, shown, reply.text])
      .replaceAll(requestId, 'REQUEST')
      .replaceAll(serverId, 'SERVER')
  }

  assert.ok(OF_A_SERVER.length >= 8)
  for (const operation of OF_A_SERVER) {
    test(`${operation.id} answers as for a server that never existed`, async () => {
      const bodies = [
        '',
        '{"broken',
        '{"unknown": 1}',
        operation.bodyExample ? JSON.stringify(operation.bodyExample) : '',
      ]
      for (const body of new Set(bodies)) {
        assert.equal(await answer(operation, theirs, body), await answer(operation, NEVER, body), body)
      }
      for (const accept of ['text/event-stream', 'text/csv', 'nonsense']) {
        const headers = [`accept: ${accept}`, 'last-event-id: act_0', 'idempotency-key: k']
        assert.equal(await answer(operation, theirs, '', headers), await answer(operation, NEVER, '', headers))
      }
    })
  }

  test('a token without the scope is told no more', async () => {
    const narrow = (await service.mint(['tokens:admin'], [(await service.createServer()).id])).token
    for (const operation of OF_A_SERVER) {
      for (const id of [theirs, NEVER]) {
        const reply = await service.call(operation.method, pathFor(operation, id), { token: narrow })
        assert.equal(reply.status, 404)
      }
    }
  })

  test('what was tried on a server that the token cannot see is not written into its activity', async () => {
    const entries = (await service.call('GET', `/servers/${theirs}/activity`)).body.data
    assert.deepEqual(
      entries.map((entry: { event: string }) => entry.event),
      ['server.created'],
    )
  })

  test('A request refused for a missing scope is recorded too.', async () => {
    const server = await service.createServer()
    for (const operation of OF_A_SERVER) {
      // Those that follow the first of a token within a minute become one entry.
      const denied = await service.mint(['tokens:admin'])
      const path = pathFor(operation, server.id)
      const reply = await service.call(operation.method, path, { token: denied.token })
      assert.equal(reply.status, 403, operation.id)
      const [entry] = (await service.call('GET', `/servers/${server.id}/activity?limit=1`)).body.data
      assert.equal(entry.event, 'access.denied')
      assert.deepEqual(entry.properties, { scope: operation.scope })
      assert.equal(entry.actor.id, denied.id)
      assert.equal(entry.requestId, reply.headers.get('x-request-id'))
    }
  })

  test('denied attempts on servers that never existed leave no trace', async () => {
    const before = (await service.call('GET', '/activity/verify')).body
    const { token: denied } = await service.mint(['tokens:admin'])
    for (const operation of OF_A_SERVER) {
      assert.equal((await service.call(operation.method, pathFor(operation, NEVER), { token: denied })).status, 403)
    }
    const after = (await service.call('GET', '/activity/verify')).body
    // One entry more: the token that was minted in between.
    assert.equal(after.entries, before.entries + 1)
  })
})

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { startProxy, startScripted } from '../../../test/support/unreliable.ts'
import { type ActivityEntry, type Client, createClient, isApiError } from '../index.ts'
import { readEvents, type ServerEvent } from './server-sent-events.ts'

let service: TestService
let client: Client
before(async () => {
  service = await startTestService()
  client = createClient({ baseUrl: service.url, token: service.adminToken })
})
after(() => service.stop())

const portOf = (entry: ActivityEntry) => (entry.properties as { changes: { port: { to: number } } }).changes.port.to

test('goes on across broken connections, each entry once', async () => {
  const { id } = await client.servers.create({ name: 'Followed' })
  await using proxy = await startProxy(service.url)
  const follower = createClient({ baseUrl: proxy.url, token: service.adminToken })
  const lastEventId = await newestOf(id)
  let reconnects = 0
  let last = Number.POSITIVE_INFINITY
  const ports: number[] = []
  const following = (async () => {
    for await (const entry of follower.activity.follow(id, { lastEventId, onReconnect: () => reconnects++ })) {
      ports.push(portOf(entry))
      if (ports.length % 10 === 0) proxy.cut()
      if (portOf(entry) === last) return
    }
  })()
  let port = 0
  while (reconnects < 3) await client.servers.change(id, { port: ++port })
  last = port + 1
  await client.servers.change(id, { port: last })
  await following
  assert.deepEqual(
    ports,
    Array.from({ length: last }, (_, index) => index + 1),
  )
  assert.ok(ports.length >= 30 && reconnects >= 3)
})

test('what is written while the very first connection breaks is not missed', async () => {
  const { id } = await client.servers.create({ name: 'Early' })
  let streams = 0
  // The first stream dies before it has brought anything, and a change is made while nobody listens.
  const dying: typeof fetch = async (input, init) => {
    const isStream = new Headers(init?.headers).get('accept') === 'text/event-stream'
    if (isStream && ++streams === 1) {
      await client.servers.change(id, { port: 1 })
      return new Response(new ReadableStream({ start: (controller) => controller.error(new Error('broken')) }))
    }
    return fetch(input, init)
  }
  const follower = createClient({ baseUrl: service.url, token: service.adminToken, fetch: dying })
  for await (const entry of follower.activity.follow(id)) {
    assert.equal(portOf(entry), 1)
    break
  }
  assert.equal(streams, 2)
})

test('resumes after the entry that the caller names', async () => {
  const { id } = await client.servers.create({ name: 'Resumed' })
  for (let port = 1; port <= 3; port++) await client.servers.change(id, { port })
  const [, second] = (await client.activity.list(id)).data
  assert.ok(second)
  for await (const entry of client.activity.follow(id, { lastEventId: second.id })) {
    assert.equal(portOf(entry), 3)
    break
  }
})

test('a connection that falls silent is made anew', async () => {
  const { id } = await client.servers.create({ name: 'Silent' })
  await using proxy = await startProxy(service.url)
  const follower = createClient({ baseUrl: proxy.url, token: service.adminToken })
  const frozen = Promise.withResolvers<void>()
  const lastEventId = await newestOf(id)
  let connects = 0
  const entries = follower.activity.follow(id, {
    lastEventId,
    silenceMs: 300,
    onConnect: () => connects++,
    onReconnect: () => frozen.resolve(),
  })
  await client.servers.change(id, { port: 1 })
  assert.equal(portOf((await entries.next()).value as ActivityEntry), 1)
  proxy.freeze()
  await client.servers.change(id, { port: 2 })
  const second = entries.next()
  await frozen.promise
  assert.equal(portOf((await second).value as ActivityEntry), 2)
  assert.ok(connects >= 2)
  await entries.return()
})

test('It ends with an ApiError when the token is revoked or the server is gone, and quietly when its signal is aborted.', async () => {
  const { id } = await client.servers.create({ name: 'Refused' })
  const { id: tokenId, token } = await service.mint(['activity:read'])
  const reader = createClient({ baseUrl: service.url, token })
  const entries = reader.activity.follow(id, { lastEventId: await newestOf(id) })
  await client.servers.change(id, { port: 1 })
  await entries.next()
  const next = entries.next()
  await client.tokens.revoke(tokenId)
  await assert.rejects(next, (error) => isApiError(error, 'unauthenticated'))

  const { token: narrow } = await service.mint(['servers:read'])
  const denied = createClient({ baseUrl: service.url, token: narrow }).activity.follow(id).next()
  await assert.rejects(denied, (error) => isApiError(error, 'forbidden'))

  const gone = client.activity.follow(id, { lastEventId: 'act_0' })
  assert.equal((await gone.next()).value?.event, 'server.created')
  await client.servers.deleteAndWait(id, 'Refused', { purge: true })
  await assert.rejects(
    async () => {
      for await (const _ of gone);
    },
    (error) => isApiError(error, 'not_found'),
  )
})

test('an aborted signal ends the iteration without an error', async () => {
  const { id } = await client.servers.create({ name: 'Aborted' })
  const stop = new AbortController()
  const ended = Array.fromAsync(client.activity.follow(id, { signal: stop.signal }))
  setImmediate(() => stop.abort())
  assert.deepEqual(await ended, [])
})

test('a service that cannot be reached at first is an error, not an endless wait', async () => {
  await using server = await startScripted(['cut'])
  const unreachable = createClient({ baseUrl: server.url, token: 'gk_x', retries: 1 })
  await assert.rejects(unreachable.activity.follow('srv_1', { lastEventId: 'act_0' }).next(), {
    name: 'TransportError',
  })
  assert.equal(server.seen.length, 2)
})

test('events are read the same however the bytes are cut', async () => {
  const text =
    'retry: 5\r\n\r\n: alive\n\nid: a\nevent: activity\ndata: {"ü":\ndata:"🏰"}\r\rdata\n\nid: b\ndata: cut off'
  const expected = [
    { id: 'a', type: 'activity', data: '{"ü":\n"🏰"}', retryMs: 5 },
    { id: 'a', type: 'message', data: '', retryMs: 5 },
  ]
  const bytes = new TextEncoder().encode(text)
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 30 }), async (cuts) => {
      assert.deepEqual(await eventsOf(cutAt(bytes, cuts)), expected)
    }),
  )
})

async function newestOf(serverId: string): Promise<string> {
  return (await client.activity.list(serverId, { limit: 1 })).data[0]?.id ?? ''
}

function cutAt(bytes: Uint8Array, cuts: number[]): Uint8Array[] {
  const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
  return places.slice(1).map((end, index) => bytes.slice(places[index], end))
}

function eventsOf(chunks: Uint8Array[]): Promise<ServerEvent[]> {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })
  return Array.fromAsync(readEvents(stream))
}

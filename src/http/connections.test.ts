import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { until } from '../../test/support/until.ts'
import { bodyOf, takeBodiesAsStreams } from './bodies.ts'
import { type ConnectionLimits, connectionLimits } from './connections.ts'
import { createHttpServer } from './server.ts'

/** More than the buffers of both sides take. */
const CHUNK = Buffer.alloc(64 * 1024)
const LARGE_CHUNKS = 512
const PLENTY = connectionLimits(1000)

async function start(t: TestContext, changed: Partial<ConnectionLimits>, trustedProxies: string[] = []) {
  const logger = pino({ level: 'silent' })
  const app = createHttpServer({ logger, trustedProxies, https: false, limits: { ...PLENTY, ...changed } })
  app.get('/', async () => ({ ok: true }))
  app.post('/json', async () => ({ ok: true }))
  await app.register(async (streams) => {
    takeBodiesAsStreams(streams)
    streams.post('/stream', async ({ raw }, reply) => {
      let bytes = 0
      let pieces = 0
      for await (const chunk of bodyOf(raw, { signal: new AbortController().signal })) {
        bytes += chunk.length
        pieces++
      }
      return reply.send({ bytes, pieces })
    })
    const held = Promise.withResolvers<void>()
    t.after(() => held.resolve())
    streams.post('/unread', async (_request, reply) => {
      reply.raw.writeProcessing()
      await held.promise
      return {}
    })
  })
  const asked: string[] = []
  app.get('/first', async (_request, reply) => {
    asked.push('first')
    await released.promise
    return reply.send('first')
  })
  app.get('/second', async () => {
    asked.push('second')
    return 'second'
  })
  app.get('/large', (_request, reply) => reply.send(Readable.from(Array(LARGE_CHUNKS).fill(CHUNK))))
  const released = Promise.withResolvers<void>()
  t.after(() => released.resolve())
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => app.close())
  const { port } = app.server.address() as AddressInfo
  return {
    server: app.server,
    asked,
    release: () => released.resolve(),
    async connect(localAddress = '127.0.0.1'): Promise<Socket> {
      const socket = connect({ port, host: '127.0.0.1', localAddress })
      t.after(() => socket.destroy())
      socket.on('error', () => {})
      await once(socket, 'connect')
      return socket
    },
  }
}

const post = (path: string, length: number) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'
const statusOf = async (socket: Socket) => String((await once(socket, 'data'))[0]).split(' ')[1]
/** `once` would fail on the error of a write that came too late. */
const closed = (socket: Socket) =>
  new Promise<unknown>((resolve) => (socket.resume().closed ? resolve(undefined) : socket.once('close', resolve)))

async function asks(socket: Socket): Promise<string | undefined> {
  socket.write(GET)
  return await statusOf(socket)
}

/** By which the service judges a pace: a machine that stands still for a while is no slow client. */
function clockOf(t: TestContext): (ms: number) => void {
  let now = performance.now()
  t.mock.method(performance, 'now', () => now)
  return (ms) => {
    now += ms
  }
}

suite('a body', () => {
  const pace = { windowMs: 200, minBytes: 1000 }
  for (const path of ['/json', '/stream']) {
    test(`that says nothing is cut (${path})`, async (t) => {
      const socket = await (await start(t, { pace })).connect()
      socket.write(`${post(path, 100)}{`)
      await closed(socket)
    })

    test(`that trickles is cut (${path})`, async (t) => {
      const socket = await (await start(t, { pace })).connect()
      socket.write(post(path, 100_000))
      const trickle = setInterval(() => socket.write(' '), 20)
      t.after(() => clearInterval(trickle))
      await closed(socket)
    })
  }

  test('that is slow, but brings what it must, arrives', async (t) => {
    const socket = await (await start(t, { pace: { windowMs: 400, minBytes: 100 } })).connect()
    const pass = clockOf(t)
    const total = 20_000
    socket.write(post('/stream', total))
    const answer = statusOf(socket)
    for (let sent = 0; sent < total; sent += 500) {
      socket.write(Buffer.alloc(500))
      await delay(40)
      pass(40)
    }
    assert.equal(await answer, '200')
  })

  test('in chunks of one byte is taken in pieces, not byte by byte', async (t) => {
    const socket = await (await start(t, {})).connect()
    const bytes = 20_000
    socket.write('POST /stream HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n')
    socket.write(`${'1\r\nx\r\n'.repeat(bytes)}0\r\n\r\n`)
    let text = ''
    while (!text.includes('}')) text += (await once(socket, 'data'))[0]
    const taken = JSON.parse(text.slice(text.indexOf('{')))
    assert.equal(taken.bytes, bytes)
    assert.ok(taken.pieces < bytes / 100, `${taken.pieces} pieces`)
  })

  test('that nobody reads yet is not to blame', async (t) => {
    const socket = await (await start(t, { pace: { windowMs: 100, minBytes: 1000 } })).connect()
    socket.write(`${post('/unread', 100)}{`)
    const isCut = once(socket, 'close').then(() => true)
    assert.equal(await Promise.race([isCut, delay(500, false)]), false)
  })

  test('of a request that was refused is thrown away for a moment only', async (t) => {
    const socket = await (await start(t, { lingerMs: 100 })).connect()
    socket.write(`${post('/nowhere', 100)}{`)
    assert.equal(await statusOf(socket), '404')
    await closed(socket)
  })

  test('of a request that was refused, and that ends in time, leaves the connection as it was', async (t) => {
    const socket = await (await start(t, { lingerMs: 60_000 })).connect()
    socket.write(`${post('/nowhere', 3)}{`)
    assert.equal(await statusOf(socket), '404')
    socket.write(' }')
    assert.equal(await asks(socket), '200')
  })

  test('of a request that was refused leaves nothing behind on a connection that is used again', async (t) => {
    const { server, connect } = await start(t, {})
    const accepted = once(server, 'connection')
    const socket = await connect()
    const [ours] = (await accepted) as [Socket]
    const refused = async () => {
      socket.write(`${post('/nowhere', 3)}{`)
      assert.equal(await statusOf(socket), '404')
      socket.write(' }')
      assert.equal(await asks(socket), '200')
    }
    await refused()
    const before = ours.listenerCount('close')
    for (let times = 0; times < 5; times++) await refused()
    assert.equal(ours.listenerCount('close'), before)
  })
})

suite('an answer', () => {
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

  test('that nobody reads is cut', async (t) => {
    const { server, connect } = await start(t, { unreadMs: 200 })
    const accepted = once(server, 'connection')
    const socket = await connect()
    const [ours] = (await accepted) as [Socket]
    socket.pause().write(get('/large'))
    await once(ours, 'close')
  })

  test('that is read slowly, and as fast as it must be, arrives', async (t) => {
    const socket = await (await start(t, { unreadMs: 400 })).connect()
    const arrived = Promise.withResolvers<void>()
    let bytes = 0
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes >= LARGE_CHUNKS * CHUNK.length) arrived.resolve()
    })
    socket.once('close', () => arrived.reject(new Error(`cut after ${bytes} bytes`)))
    const pass = clockOf(t)
    socket.write(get('/large'))
    // Nothing is read for a while, and then some.
    for (let rounds = 0; rounds < 10; rounds++) {
      socket.pause()
      await delay(100)
      socket.resume()
      await delay(1)
      pass(100)
    }
    await arrived.promise
  })

  test('that moves only when the buffers of the system have room again is not cut at the pace of a body', async (t) => {
    const limits = { pace: { windowMs: 100, minBytes: 1000 }, unreadMs: 60_000 }
    const { server, connect } = await start(t, limits)
    const accepted = once(server, 'connection')
    const socket = await connect()
    const [ours] = (await accepted) as [Socket]
    socket.pause().write(get('/large'))
    const isCut = once(ours, 'close').then(() => true)
    assert.equal(await Promise.race([isCut, delay(500, false)]), false)
    let bytes = 0
    for await (const chunk of socket) {
      bytes += chunk.length
      if (bytes >= LARGE_CHUNKS * CHUNK.length) break
    }
    assert.ok(bytes >= LARGE_CHUNKS * CHUNK.length)
  })

  test('that has nothing to send is not to blame', async (t) => {
    const { asked, connect, release } = await start(t, { unreadMs: 100 })
    const socket = await connect()
    socket.write(get('/first'))
    await until(async () => asked.length > 0)
    await delay(500)
    assert.deepEqual(asked, ['first'])
    release()
    assert.equal(await statusOf(socket), '200')
  })

  test('comes before the next request on its connection begins', async (t) => {
    const { asked, connect, release } = await start(t, {})
    const socket = await connect()
    socket.write(`${get('/first')}${get('/second')}${get('/second')}`)
    assert.equal(await asks(await connect()), '200')
    assert.deepEqual(asked, ['first'])
    release()
    let text = ''
    while (!text.includes('second', text.indexOf('second') + 1)) text += (await once(socket, 'data'))[0]
    assert.deepEqual(asked, ['first', 'second', 'second'])
  })

  test('has a bounded number of requests that wait for it', async (t) => {
    const { asked, connect } = await start(t, { pipelined: 3 })
    const [patient, greedy] = [await connect(), await connect()]
    patient.write(get('/first') + get('/second').repeat(3))
    greedy.write(get('/first') + get('/second').repeat(4))
    await closed(greedy)
    assert.deepEqual(asked, ['first', 'first'])
    assert.equal(patient.destroyed, false)
  })
})

suite('connections', () => {
  test('beyond the bound in all take the place of the one that has waited longest', async (t) => {
    const server = await start(t, { connections: 3, connectionsPerAddress: 10 })
    const [first, second, third] = [await server.connect(), await server.connect(), await server.connect()]
    assert.equal(await asks(first), '200')
    const fourth = await server.connect()
    assert.equal(await asks(fourth), '200')
    await closed(second)
    assert.deepEqual(await Promise.all([first, third].map(asks)), ['200', '200'])
  })

  test('with a request under way keep their place, and the newcomer is refused', async (t) => {
    const server = await start(t, { connections: 2, connectionsPerAddress: 10 })
    const busy = [await server.connect(), await server.connect()]
    for (const socket of busy) {
      socket.write(`${post('/unread', 2)}{`)
      assert.equal(await statusOf(socket), '102')
    }
    await closed(await server.connect())
    assert.deepEqual(
      busy.map((socket) => socket.destroyed),
      [false, false],
    )
  })

  test('from one address do not take the places of others', async (t) => {
    const server = await start(t, { connections: 100, connectionsPerAddress: 2 })
    const other = await server.connect('127.0.0.3')
    const own = [await server.connect(), await server.connect(), await server.connect()]
    await closed(own[0] as Socket)
    assert.deepEqual(await Promise.all([other, ...own.slice(1)].map(asks)), ['200', '200', '200'])
  })

  test('of a trusted proxy are as many as there may be in all', async (t) => {
    const server = await start(t, { connections: 100, connectionsPerAddress: 2 }, ['127.0.0.0/8'])
    const sockets = await Promise.all(Array.from({ length: 10 }, () => server.connect()))
    assert.deepEqual(new Set(await Promise.all(sockets.map(asks))), new Set(['200']))
  })
})

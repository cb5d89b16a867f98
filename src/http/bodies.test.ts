import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { fail } from '../contract/errors.ts'
import { BODY_LINGER_MS, LINGERING_PER_ADDRESS_MAX, THROWN_AWAY } from '../contract/fixed-limits.ts'
import { answerBeforeTheEnd, bodyOf, takeBodiesAsStreams } from './bodies.ts'
import { createHttpServer } from './server.ts'

const MIB = 1024 * 1024
/** What the socket, the message and whoever has stopped reading hold at most. */
const HELD_BYTES = 256 * 1024
const BODY = Buffer.alloc(4 * MIB)
const NEVER_MS = 2 ** 31 - 1

async function start(t: TestContext) {
  const app = createHttpServer({ logger: pino({ level: 'silent' }), trustedProxies: [], https: false })
  app.get('/', async () => 'here')
  const refused = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  t.after(() => answered.resolve())
  await app.register(async (streams) => {
    takeBodiesAsStreams(streams)
    answerBeforeTheEnd(streams)
    streams.post('/refused', async ({ raw }) => {
      for await (const _ of bodyOf(raw, { signal: new AbortController().signal })) break
      refused.resolve()
      await answered.promise
      throw fail('invalid_request', 'The first bytes were enough.')
    })
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const sockets: Socket[] = []
  t.after(async () => {
    // What is still open would be waited for.
    for (const socket of sockets) socket.destroy()
    await app.close()
  })
  const { port } = app.server.address() as AddressInfo
  return {
    refused: refused.promise,
    answer: () => answered.resolve(),
    /** Both of its ends. */
    async connect(localAddress = '127.0.0.1'): Promise<{ socket: Socket; accepted: Socket }> {
      const socket = connect({ port, host: '127.0.0.1', localAddress })
      sockets.push(socket)
      socket.on('error', () => {})
      const accepted = Promise.withResolvers<Socket>()
      // Several connect at a time: what comes may be the end of another one.
      const isItsEnd = (end: Socket) => end.remotePort === socket.localPort && end.remoteAddress === localAddress
      const onConnection = (end: Socket) => isItsEnd(end) && accepted.resolve(end)
      app.server.on('connection', onConnection)
      await once(socket, 'connect')
      return { socket, accepted: await accepted.promise.finally(() => app.server.off('connection', onConnection)) }
    },
  }
}

/** Whatever could have been read by then has been. */
async function ask({ socket }: { socket: Socket }, times: number): Promise<void> {
  for (let count = 0; count < times; count++) {
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await once(socket, 'data')
  }
}

/** A refused connection is closed when its body has ended, or gives way: on a busy machine either may take longer than it is kept. */
function lingerForEver(t: TestContext): void {
  const realTimeout = setTimeout
  t.mock.method(globalThis, 'setTimeout', (work: () => void, ms: number) =>
    realTimeout(work, ms === BODY_LINGER_MS ? NEVER_MS : ms),
  )
}

const post = (length: number) => `POST /refused HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n`

test('a body that is refused by its first bytes is read no further until it is answered', async (t) => {
  lingerForEver(t)
  const service = await start(t)
  const [refused, other] = [await service.connect(), await service.connect()]
  refused.socket.write(post(BODY.length))
  refused.socket.write(BODY)
  await service.refused
  await ask(other, 10)
  assert.ok(refused.accepted.bytesRead <= HELD_BYTES, `${refused.accepted.bytesRead} bytes`)
  service.answer()
  assert.match(String(await once(refused.socket, 'data')), /^HTTP\/1\.1 400 /)
  // The first of an address are read on, so that a client that sends everything first can read its answer.
  await once(refused.accepted, 'close')
  assert.ok(refused.accepted.bytesRead > BODY.length, `${refused.accepted.bytesRead} bytes`)
})

test('of the refused that still send, the one that was refused first gives way where there are many', async (t) => {
  lingerForEver(t)
  const service = await start(t)
  service.answer()
  const send = async () => {
    const connection = await service.connect()
    const closed = once(connection.accepted, 'close')
    connection.socket.write(`${post(BODY.length)}x`)
    await once(connection.socket, 'data')
    return { connection, closed }
  }
  const first = await send()
  const others = []
  for (let count = 1; count < LINGERING_PER_ADDRESS_MAX; count++) others.push(await send())
  assert.equal(first.connection.accepted.destroyed, false)
  await send()
  await first.closed
  assert.ok(others.every(({ connection }) => !connection.accepted.destroyed))
})

test('where much was refused, the next connections from there are read at a pace too, and no others', async (t) => {
  const service = await start(t)
  service.answer()
  const reads = THROWN_AWAY.burstBytes / (64 * 1024)
  const connections = await Promise.all(Array.from({ length: 2 * reads }, () => service.connect()))
  for (const { socket } of connections) socket.write(post(BODY.length) + 'x'.repeat(64 * 1024))
  await Promise.all(connections.map(({ socket }) => once(socket, 'data')))
  const answered: string[] = []
  const asks = async (name: string, address: string) => {
    await ask(await service.connect(address), 1)
    answered.push(name)
  }
  await Promise.all([asks('late', '127.0.0.1'), asks('other', '127.0.0.3')])
  assert.deepEqual(answered, ['other', 'late'])
})

test('what refused requests still send is read at a pace', async (t) => {
  const service = await start(t)
  service.answer()
  const connections = await Promise.all(Array.from({ length: 12 }, service.connect))
  const began = performance.now()
  for (const { socket } of connections) {
    socket.write(post(BODY.length))
    socket.write(BODY)
    socket.resume()
  }
  await Promise.all(connections.map(({ accepted }) => new Promise((resolve) => accepted.once('close', resolve))))
  const bytes = connections.reduce((sum, { accepted }) => sum + accepted.bytesRead, 0)
  const paced = THROWN_AWAY.burstBytes + (THROWN_AWAY.bytesPerSecond * (performance.now() - began)) / 1000
  assert.ok(bytes <= paced + connections.length * HELD_BYTES, `${bytes} bytes, where ${paced} may be`)
})

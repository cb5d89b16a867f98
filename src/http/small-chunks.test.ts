import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { until } from '../../test/support/until.ts'
import { SMALL_CHUNKS, UNREAD_BODY_BYTES } from '../contract/fixed-limits.ts'
import { bodyOf, takeBodiesAsStreams } from './bodies.ts'
import { createHttpServer } from './server.ts'

/** What Node parses at once, and nobody can divide. */
const READ_BYTES = 64 * 1024
const LENGTH = 30_000
const DIGITS = Array.from({ length: LENGTH }, (_, at) => at % 10)
const ONE_BYTE_CHUNKS = `${DIGITS.map((digit) => `1\r\n${digit}\r\n`).join('')}0\r\n\r\n`

const head = (method: string, path: string) =>
  `${method} ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`

async function start(t: TestContext) {
  const app = createHttpServer({ logger: pino({ level: 'silent' }), trustedProxies: [], https: false })
  const pieces: number[] = []
  const unread = Promise.withResolvers<IncomingMessage>()
  const read = Promise.withResolvers<void>()
  t.after(() => read.resolve())
  app.get('/', async () => 'read no body')
  app.post('/buffer', async ({ body }) => String((body as number[]).join('')))
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
    done(
      null,
      [...(body as Buffer)].map((byte) => byte - 48),
    ),
  )
  await app.register(async (streams) => {
    takeBodiesAsStreams(streams)
    streams.post('/stream', async ({ raw }) => await textOf(raw, pieces))
    streams.post('/unread', async ({ raw }) => {
      unread.resolve(raw)
      await read.promise
      return await textOf(raw, pieces)
    })
  })
  const sockets: Socket[] = []
  app.server.on('connection', (socket: Socket) => sockets.push(socket))
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => app.close())
  return {
    sockets,
    pieces,
    unread: unread.promise,
    read: () => read.resolve(),
    watchReads: () => watchReads(t, sockets),
    async connect(): Promise<Socket> {
      const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
      t.after(() => socket.destroy())
      socket.on('error', () => {})
      await once(socket, 'connect')
      return socket
    },
  }
}

async function textOf(message: IncomingMessage, pieces: number[]): Promise<string> {
  message.on('data', (piece: Buffer) => pieces.push(piece.length))
  let text = ''
  for await (const chunk of bodyOf(message, { signal: new AbortController().signal })) text += chunk
  return text
}

/** Tells the most bytes that were read from all of them in one turn of the event loop. */
function watchReads(t: TestContext, sockets: readonly Socket[]): () => number {
  const sum = () => sockets.reduce((bytes, socket) => bytes + socket.bytesRead, 0)
  let [before, most, isOver] = [sum(), 0, false]
  const look = () => {
    const now = sum()
    most = Math.max(most, now - before)
    before = now
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  t.after(() => (isOver = true))
  return () => most
}

async function answerOn(socket: Socket): Promise<string> {
  let text = ''
  for (;;) {
    text += (await once(socket, 'data'))[0]
    const [, length] = /content-length: (\d+)/i.exec(text) ?? []
    const at = text.indexOf('\r\n\r\n') + 4
    if (at > 3 && text.length - at >= Number(length)) return `${text.split(' ')[1]} ${text.slice(at)}`
  }
}

for (const [name, method, path, expected] of [
  ['taken as a stream', 'POST', '/stream', `200 ${DIGITS.join('')}`],
  ['taken as a whole', 'POST', '/buffer', `200 ${DIGITS.join('')}`],
  ['of a request that is refused', 'POST', '/nowhere', /^404 /],
  ['of a request that takes none', 'GET', '/', '200 read no body'],
] as const)
  test(`a body in chunks of one byte, ${name}, is one read in a turn of the event loop, at a pace`, async (t) => {
    const service = await start(t)
    const socket = await service.connect()
    const mostRead = service.watchReads()
    const began = performance.now()
    socket.write(head(method, path) + ONE_BYTE_CHUNKS)
    const answer = await answerOn(socket)
    if (expected instanceof RegExp) assert.match(answer, expected)
    else assert.equal(answer, expected)
    // Answered or not, what comes next on the connection comes after the body.
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    assert.equal(await answerOn(socket), '200 read no body')
    const ms = performance.now() - began
    assert.ok(mostRead() <= READ_BYTES, `${mostRead()} bytes in one turn`)
    // The first read, and the last, wait for nobody.
    const paced = LENGTH - (2 * READ_BYTES) / 6
    assert.ok(ms >= (1000 * paced) / SMALL_CHUNKS.perSecond, `${ms} ms`)
    const reads = Math.ceil(ONE_BYTE_CHUNKS.length / READ_BYTES) + 1
    assert.ok(service.pieces.length <= SMALL_CHUNKS.free + reads, `${service.pieces.length} pieces`)
  })

test('a body in small chunks that nobody reads yet waits, and arrives when somebody does', async (t) => {
  const service = await start(t)
  const socket = await service.connect()
  const chunk = `${(200).toString(16)}\r\n${'x'.repeat(200)}\r\n`
  socket.write(`${head('POST', '/unread')}${chunk.repeat(4000)}0\r\n\r\n`)
  const message = await service.unread
  await until(async () => message.readableLength >= UNREAD_BODY_BYTES)
  // A second read would have come by now.
  const other = await service.connect()
  other.write(head('POST', '/stream') + ONE_BYTE_CHUNKS)
  await answerOn(other)
  assert.ok(message.readableLength < UNREAD_BODY_BYTES + READ_BYTES, `${message.readableLength} bytes`)
  service.read()
  assert.equal(await answerOn(socket), `200 ${'x'.repeat(800_000)}`)
})

test('many connections that send chunks of one byte at once are read over many turns', async (t) => {
  const service = await start(t)
  const sockets = await Promise.all(Array.from({ length: 12 }, service.connect))
  await until(async () => service.sockets.length === sockets.length)
  const mostRead = service.watchReads()
  const bytes = 9000
  const body = `${head('POST', '/stream')}${'1\r\nx\r\n'.repeat(bytes)}0\r\n\r\n`
  for (const socket of sockets) socket.write(body)
  for (const answer of await Promise.all(sockets.map(answerOn))) assert.equal(answer, `200 ${'x'.repeat(bytes)}`)
  assert.ok(mostRead() <= 2 * body.length, `${mostRead()} bytes in one turn`)
})

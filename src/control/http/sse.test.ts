import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import Fastify from 'fastify'
import { sendEvents } from './sse.ts'

test('a client that went away before its stream began holds nothing open', { timeout: 10_000 }, async (t) => {
  const app = Fastify({ forceCloseConnections: true })
  t.after(() => app.close())
  const arrived = Promise.withResolvers<() => void>()
  const ended = Promise.withResolvers<void>()
  app.get('/', async (_request, reply) => {
    const gone = once(reply.raw, 'close')
    arrived.resolve(() => socket.destroy())
    await gone
    await sendEvents(reply, forEver, new AbortController().signal).then(ended.resolve, ended.reject)
  })
  await app.listen({ port: 0 })
  const { port } = app.server.address() as { port: number }
  const socket = connect(port, 'localhost')
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const leave = await arrived.promise
  leave()
  await assert.doesNotReject(ended.promise)
})

async function* forEver(): AsyncGenerator<string> {
  for (;;) yield 'data: news\n\n'
}

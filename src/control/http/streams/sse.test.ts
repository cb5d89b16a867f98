import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import Fastify from 'fastify'
import { orDropped, sendEvents } from './sse.ts'

test('a client that went away before its stream began holds nothing open', { timeout: 120_000 }, async (t) => {
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

test('a reader that does not take what it is sent is dropped, and what waits for it stays small', {
  timeout: 120_000,
}, async (t) => {
  const app = Fastify({ forceCloseConnections: true })
  t.after(() => app.close())
  const ended = Promise.withResolvers<void>()
  let sent = 0
  let most = 0
  app.get('/', async (_request, reply) => {
    async function* many(): AsyncGenerator<string> {
      for (;;) {
        most = Math.max(most, reply.raw.writableLength)
        sent += 64 * 1024
        yield `data: ${'x'.repeat(64 * 1024)}\n\n`
      }
    }
    await sendEvents(reply, many, new AbortController().signal, 200).then(ended.resolve, ended.reject)
  })
  await app.listen({ port: 0 })
  const { port } = app.server.address() as { port: number }
  const socket = connect(port, 'localhost').on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  socket.pause()
  await ended.promise
  assert.ok(sent < 64 * 1024 * 1024, 'nothing is made that nobody takes')
  assert.ok(most <= 256 * 1024, `${most} bytes waited`)
  socket.destroy()
})

test('a reader of an answer that flows by itself is dropped too', { timeout: 120_000 }, async (t) => {
  const app = Fastify({ forceCloseConnections: true })
  t.after(() => app.close())
  const closed = Promise.withResolvers<void>()
  app.get('/', (_request, reply) => {
    reply.raw.once('close', closed.resolve)
    return reply.send(Readable.from(orDropped(reply, forEver64(), 200), { highWaterMark: 1 }))
  })
  await app.listen({ port: 0 })
  const { port } = app.server.address() as { port: number }
  const socket = connect(port, 'localhost').on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  socket.pause()
  await closed.promise
  socket.destroy()
})

async function* forEver64(): AsyncGenerator<string> {
  for (;;) yield 'x'.repeat(64 * 1024)
}

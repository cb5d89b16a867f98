import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import type { FastifyReply } from 'fastify'
import { sendStream } from './serve-file.ts'

test('a client that has left before its answer begins costs nobody else anything', async () => {
  const left = new Error('the client has left')
  const source = Readable.from(['a', 'b'])
  // One of two that are joined says by an error that it is destroyed, which nobody would hear.
  const joined = source.compose(async function* (chunks: AsyncIterable<string>) {
    yield* chunks
  }) as unknown as Readable
  await assert.rejects(sendStream(joined, {} as FastifyReply, AbortSignal.abort(left)), left)
  await new Promise((resolve) => setImmediate(resolve))
  assert.ok(source.destroyed)
})

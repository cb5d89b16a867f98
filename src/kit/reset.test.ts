import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { reset } from './reset.ts'

/** Both ends of one connection. */
async function connected(): Promise<{ near: Socket; far: Socket }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const far = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [near] = (await once(server, 'connection')) as [Socket]
  server.close()
  return { near, far }
}

test('a connection that is reset is closed at once, and the other side knows', async () => {
  const { near, far } = await connected()
  const failed = once(far, 'error')
  reset(near)
  await once(near, 'close')
  assert.match(String(await failed), /ECONNRESET/)
})

test('one that is just about to end is closed too', async () => {
  const { near, far } = await connected()
  near.on('error', assert.fail)
  near.end('goodbye')
  reset(near)
  await once(near, 'close')
  far.destroy()
})

test('one that is closed already is left alone', async () => {
  const { near, far } = await connected()
  near.on('error', assert.fail)
  near.destroy()
  await once(near, 'close')
  reset(near)
  far.destroy()
})

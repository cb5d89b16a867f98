// Few transfers at once, as with few descriptors: who holds them for as long as it can, and who gets one all the same.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { truncateSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openDescriptors } from '../files/trees.testing.ts'
import { layout } from '../layout.ts'
import { startAgent, type TestAgent, until } from './agent.testing.ts'
import { begun, call, offsetOf, patch } from './tus.testing.ts'

/** More than the buffers of both sides take, so that an answer waits for its reader. */
const LARGE_BYTES = 64 * 1024 * 1024
const TIMEOUT_MS = 120_000

async function send(t: TestContext, agent: TestAgent, text: string): Promise<Socket> {
  const socket = connect(agent.port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.on('error', () => {}).pause()
  await once(socket, 'connect')
  socket.write(text)
  return socket
}

test('downloads of four servers that nobody reads leave room for those of a fifth', {
  timeout: TIMEOUT_MS,
}, async (t) => {
  const agent = await startAgent(t, undefined, { transfersAtOnce: 8 })
  const servers = ['srv_1', 'srv_2', 'srv_3', 'srv_4']
  for (const greedy of servers) {
    await agent.agent.servers.create({ serverId: greedy })
    const large = join(layout(agent.dataDir).server(greedy).files, 'large')
    writeFileSync(large, 'here')
    truncateSync(large, LARGE_BYTES)
    const { pathname } = new URL(await agent.downloadUrl('/large', 'raw', { serverId: greedy }))
    for (let times = 0; times < 3; times++) {
      const socket = await send(t, agent, `GET ${pathname} HTTP/1.1\r\nhost: x\r\n\r\n`)
      // The first of each is served; the rest may have to wait.
      if (times === 0) await once(socket, 'readable')
    }
  }
  const put = await agent.contentUrl('write-content', { path: '/quiet', maxBytes: 100 })
  assert.equal((await fetch(put, { method: 'PUT', body: 'quiet' })).status, 201)
  const get = await fetch(await agent.downloadUrl('/quiet'))
  assert.deepEqual([get.status, await get.text()], [200, 'quiet'])
})

test('an upload by tus goes on from a new connection though its older request holds the last transfer', {
  timeout: TIMEOUT_MS,
}, async (t) => {
  const agent = await startAgent(t, undefined, { transfersAtOnce: 1 })
  /** Has begun to bring its bytes, and brings no more. */
  const stalled = async (url: string, sentBytes = 0) => {
    const head = `PATCH ${new URL(url).pathname} HTTP/1.1\r\nhost: x\r\ntus-resumable: 1.0.0\r\nupload-offset: 0\r\n`
    const type = 'content-type: application/offset+octet-stream\r\ncontent-length: 2000\r\n\r\n'
    await send(t, agent, `${head}${type}${'x'.repeat(sentBytes)}`)
    const id = url.slice(url.lastIndexOf('/') + 1)
    await until(() => openDescriptors().some((path) => path.includes(id)))
  }
  const url = await begun(agent, 2000)
  await stalled(url, 1000)
  assert.equal((await call(url, 'OPTIONS')).status, 204)
  const offset = await offsetOf(url)
  assert.ok(offset <= 1000)
  assert.equal((await patch(url, offset, Buffer.alloc(2000 - offset, 'x'))).status, 204)
  assert.equal(agent.read('a.bin'), 'x'.repeat(2000))
  const other = await begun(agent, 2000, 'b.bin')
  await stalled(other)
  assert.equal((await patch(other, 0, Buffer.alloc(2000, 'y'))).status, 204, 'without asking for the offset')
  const third = await begun(agent, 2000, 'c.bin')
  await stalled(third)
  assert.equal((await call(third, 'DELETE')).status, 204)
})

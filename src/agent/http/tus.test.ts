import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeTree, mount, openDescriptors, withoutRoot } from '../files/trees.testing.ts'
import { serverId, startAgent, type TestAgent, until } from './agent.testing.ts'
import { base64, begun, call, create, MIB, offsetOf, patch, sha1, upload } from './tus.testing.ts'

test('tus-js-client uploads, into a directory, with nested names', async (t) => {
  const agent = await startAgent(t)
  const content = randomBytes(3 * MIB)
  await upload(await agent.uploadUrl(), content, {
    filename: 'r.mca',
    relativePath: 'world/r.mca',
    directory: '/saves',
  })
  assert.deepEqual(readFileSync(agent.at('saves/world/r.mca')), content)
  await upload(
    await agent.uploadUrl(),
    content,
    { filename: 'chunked' },
    { chunkSize: 512 * 1024, uploadDataDuringCreation: true },
  )
  assert.deepEqual(readFileSync(agent.at('chunked')), content)
  await upload(await agent.uploadUrl(), Buffer.alloc(0), { filename: 'empty' })
  assert.equal(statSync(agent.at('empty')).size, 0)
  const facts = await agent.facts()
  assert.deepEqual(
    facts.map(({ kind, properties }) => [kind, properties.directory, properties.files, properties.protocol]),
    [
      ['file.uploaded', '/saves', ['world/r.mca'], 'tus'],
      ['file.uploaded', '/', ['chunked'], 'tus'],
      ['file.uploaded', '/', ['empty'], 'tus'],
    ],
  )
  const { reservedBytes } = await agent.agent.files.usage({ serverId })
  assert.equal(reservedBytes, 0)
  assert.deepEqual(
    openDescriptors().filter((path) => path.includes(agent.folders.root)),
    [],
  )
})

/** Lets through so many bytes of a connection to the agent, then cuts it. */
async function cuttingProxy(t: TestContext, agent: TestAgent, nextCut: () => number) {
  const sockets = new Set<Socket>()
  let cuts = 0
  const server = createServer((client) => {
    const upstream = connect(agent.port, '127.0.0.1')
    let left = nextCut()
    const cut = () => {
      client.destroy()
      upstream.destroy()
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', cut).on('close', cut)
    }
    client.on('data', (chunk: Buffer) => {
      upstream.write(chunk.subarray(0, left))
      left -= chunk.length
      if (left > 0) return
      cuts++
      upstream.end(cut)
    })
    upstream.pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, cuts: () => cuts }
}

test('an upload whose connection is cut again and again arrives whole', async (t) => {
  const agent = await startAgent(t)
  const proxy = await cuttingProxy(t, agent, () => Math.floor(Math.random() * 600_000))
  const content = randomBytes(5 * MIB)
  const url = (await agent.uploadUrl()).replace(String(agent.port), String(proxy.port))
  await upload(url, content, { filename: 'cut.bin' })
  assert.ok(proxy.cuts() >= 5, `${proxy.cuts()} cuts`)
  assert.deepEqual(readFileSync(agent.at('cut.bin')), content)
  await until(() => agent.staged().every((name) => name.endsWith('.json')))
})

test('A chunk with Upload-Checksum that does not match is 460 checksum_mismatch, and nothing of it is kept', async (t) => {
  const agent = await startAgent(t)
  const content = randomBytes(100_000)
  const url = await begun(agent, content.length)
  const wrong = await patch(url, 0, content.subarray(0, 50_000), { 'upload-checksum': sha1(Buffer.from('other')) })
  assert.deepEqual([wrong.status, wrong.code], [460, 'checksum_mismatch'])
  assert.equal(await offsetOf(url), 0)
  assert.equal((await patch(url, 0, content, { 'upload-checksum': 'crc7 AAAA' })).status, 400)
  assert.equal((await patch(url, 0, content, { 'upload-checksum': sha1(content) })).status, 204)
  assert.deepEqual(readFileSync(agent.at('a.bin')), content)
})

test('an upload is over a day after its last byte', async (t) => {
  const agent = await startAgent(t)
  const url = await begun(agent, 10)
  const before = Date.now()
  const { headers } = await patch(url, 0, Buffer.from('abc'))
  const expires = Date.parse(headers.get('upload-expires') ?? '')
  const [early, late] = [before, Date.now()].map((at) => at + 24 * 3600_000) as [number, number]
  // The header has whole seconds, and the time of a file is that of the system's last tick.
  assert.ok(expires > early - 2000 && expires <= late, `${expires - early} ms`)
  const part = join(agent.folders.staging, `part-${url.slice(url.lastIndexOf('/') + 1)}`)
  utimesSync(part, new Date(), new Date(Date.now() - 25 * 3600_000))
  assert.equal((await call(url, 'HEAD')).status, 404)
  await agent.restart()
  await until(() => agent.staged().length === 0)
  assert.equal((await agent.agent.files.usage({ serverId })).reservedBytes, 0)
})

test('a terminated upload leaves nothing', async (t) => {
  const agent = await startAgent(t)
  const url = await begun(agent, 10)
  await patch(url, 0, Buffer.from('abc'))
  assert.equal((await call(url, 'DELETE')).status, 204)
  assert.deepEqual([agent.staged(), agent.tree()], [[], []])
  assert.equal((await call(url, 'HEAD')).status, 404)
  assert.equal((await call(url, 'DELETE')).status, 404)
  assert.equal((await agent.agent.files.usage({ serverId })).reservedBytes, 0)
})

test('what cannot be taken is refused before the first byte', async (t) => {
  const agent = await startAgent(t)
  await agent.agent.files.setQuota({ serverId, quotaBytes: 10 * MIB, maxEntries: null })
  writeFileSync(agent.at('there.txt'), 'old')
  const url = await agent.uploadUrl(20 * MIB)
  const names = ['../x', '/x', 'a\0b', '..\\x', 'x/']
  for (const name of names) assert.equal((await create(url, 1, name)).code, 'invalid_path')
  const notUtf8 = Buffer.from([0x61, 0xff, 0x62]).toString('base64')
  for (const key of ['filename', 'name', 'relativePath', 'directory']) {
    const metadata = `${key} ${notUtf8}${key === 'filename' ? '' : `,filename ${base64('a')}`}`
    assert.equal((await create(url, 1, '', { 'upload-metadata': metadata })).code, 'invalid_path', key)
  }
  assert.equal((await create(url, 30 * MIB)).code, 'too_large')
  assert.equal((await create(url, 15 * MIB)).code, 'quota_exceeded')
  assert.equal((await call(url, 'POST', { 'upload-length': '1' })).code, 'invalid_request')
  assert.equal((await call(url, 'POST', { 'upload-defer-length': '1' })).code, 'invalid_request')
  assert.equal((await create(url, 1, 'x', { 'tus-resumable': '0.2.0' })).status, 412)
  const keep = `filename ${base64('there.txt')},overwrite ${base64('false')}`
  assert.equal((await create(url, 1, '', { 'upload-metadata': keep })).code, 'already_exists')
  assert.deepEqual([agent.staged(), agent.tree()], [[], ['there.txt']])
})

test('bytes at another offset or beyond the length are refused', async (t) => {
  const agent = await startAgent(t)
  const url = await begun(agent, 10)
  assert.equal((await patch(url, 5, Buffer.from('x'))).code, 'upload_offset_conflict')
  assert.equal((await patch(url, 0, Buffer.alloc(11))).code, 'too_large')
  assert.equal(
    (await call(url, 'PATCH', { 'content-type': 'application/offset+octet-stream' })).code,
    'invalid_request',
  )
  assert.equal(await offsetOf(url), 0)
})

test('the options tell what is spoken', async (t) => {
  const agent = await startAgent(t)
  const { status, headers } = await call(await agent.uploadUrl(5 * MIB), 'OPTIONS')
  assert.equal(status, 204)
  assert.equal(headers.get('tus-version'), '1.0.0')
  assert.equal(headers.get('tus-max-size'), String(5 * MIB))
  assert.equal(headers.get('tus-extension'), 'creation,creation-with-upload,checksum,expiration,termination')
  assert.match(headers.get('tus-checksum-algorithm') ?? '', /sha1/)
  assert.equal(headers.get('access-control-allow-origin'), null)
})

test('an upload goes on under any link of its token for its server, and under no other', async (t) => {
  const agent = await startAgent(t)
  const url = await begun(agent, 10)
  const id = url.slice(url.lastIndexOf('/'))
  await patch(url, 0, Buffer.from('abc'))
  assert.equal(await offsetOf((await agent.uploadUrl()) + id), 3)
  assert.equal((await call((await agent.uploadUrl(MIB, { tokenId: 'tok_other' })) + id, 'HEAD')).status, 404)
  await agent.agent.servers.create({ serverId: 'srv_other' })
  assert.equal((await call((await agent.uploadUrl(MIB, { serverId: 'srv_other' })) + id, 'HEAD')).status, 404)
  await agent.agent.links.revoke({ tokenIds: ['tok_test'] })
  assert.equal((await call(url, 'HEAD')).status, 404)
  await agent.restart()
  assert.equal((await call(url, 'HEAD')).status, 404)
})

test('a link past its time still serves the upload that receives bytes, also after a restart', async (t) => {
  const agent = await startAgent(t)
  const url = await begun(agent, 10)
  agent.pass(14 * 60_000)
  await patch(url, 0, Buffer.from('abc'))
  agent.pass(10 * 60_000)
  assert.equal(await offsetOf(url), 3)
  const part = join(agent.folders.staging, `part-${url.slice(url.lastIndexOf('/') + 1)}`)
  // The disk's clock is not the test's: the last byte came 10 minutes ago.
  utimesSync(part, new Date(), new Date(Date.now() + 14 * 60_000))
  await agent.restart()
  assert.equal(await offsetOf(url), 3)
  agent.pass(6 * 60_000)
  assert.equal((await call(url, 'HEAD')).status, 404)
})

test('A new request for an upload ends an older one for the same upload: a client that lost its connection need not wait for it to time out.', async (t) => {
  const agent = await startAgent(t)
  const content = randomBytes(MIB)
  const url = await begun(agent, content.length)
  const part = join(agent.folders.staging, `part-${url.slice(url.lastIndexOf('/') + 1)}`)
  const lost = httpRequest(url, {
    method: 'PATCH',
    headers: { 'tus-resumable': '1.0.0', 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' },
  })
  lost.on('error', () => {})
  t.after(() => lost.destroy())
  lost.write(content.subarray(0, 600_000))
  await until(() => statSync(part).size > 0)
  const offset = await offsetOf(url)
  assert.ok(offset > 0 && offset <= 600_000)
  assert.equal((await patch(url, offset, content.subarray(offset))).status, 204)
  assert.deepEqual(readFileSync(agent.at('a.bin')), content)
})

test('a full disk is said so, and the upload goes on when there is room', { skip: withoutRoot() }, async (t) => {
  const dataDir = makeTree(t, { [`servers/${serverId}/`]: '' })
  using _mounted = mount(join(dataDir, 'servers', serverId), '-t', 'tmpfs', '-o', 'size=32m', 'tmpfs')
  const agent = await startAgent(t, dataDir)
  const url = await begun(agent, 20 * MIB)
  writeFileSync(agent.at('filler'), Buffer.alloc(25 * MIB))
  const content = randomBytes(20 * MIB)
  const full = await patch(url, 0, content)
  assert.deepEqual([full.status, full.code], [507, 'disk_full'])
  truncateSync(agent.at('filler'))
  const offset = await offsetOf(url)
  assert.equal((await patch(url, offset, content.subarray(offset))).status, 204)
  assert.deepEqual(readFileSync(agent.at('a.bin')), content)
})

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { type ClientRequest, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { makeTree, mount, openDescriptors, withoutRoot } from '../files/trees.testing.ts'
import { formOf, serverId, startAgent, type TestAgent, until } from './agent.testing.ts'

const MIB = 1024 * 1024
const run = promisify(execFile)

async function post(url: string, body: FormData | string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { method: 'POST', body, headers })
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}

/** A form that is begun and not ended. */
function begin(url: string, name = 'big.bin', headers: Record<string, string> = {}): ClientRequest {
  const request = httpRequest(url, {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=x', ...headers },
  })
  request.on('error', () => {})
  request.write(`--x\r\nContent-Disposition: form-data; name="files"; filename="${name}"\r\n\r\n`)
  return request
}

async function nothingLeft(agent: TestAgent, tree: string[] = []) {
  await until(() => agent.staged().length === 0)
  assert.deepEqual(agent.tree(), tree)
  await until(async () => (await agent.agent.files.usage({ serverId })).reservedBytes === 0)
}

test('many files with nested names come in with one request, and one fact tells of it', async (t) => {
  const agent = await startAgent(t)
  const url = await agent.uploadUrl()
  const files = { 'a.txt': 'one', 'world/region/r.0.0.mca': 'two', 'ünï ✓.txt': 'three', 'empty.txt': '' }
  const { status, body } = await post(`${url}?directory=/mods`, formOf(files))
  assert.equal(status, 200)
  assert.deepEqual(
    body.data.map((entry: { path: string; sizeBytes: number }) => [entry.path, entry.sizeBytes]),
    [
      ['/mods/a.txt', 3],
      ['/mods/world/region/r.0.0.mca', 3],
      ['/mods/ünï ✓.txt', 5],
      ['/mods/empty.txt', 0],
    ],
  )
  for (const [name, content] of Object.entries(files)) assert.equal(agent.read(`mods/${name}`), content)
  const [fact, ...others] = await agent.facts()
  assert.deepEqual(others, [])
  assert.equal(fact?.kind, 'file.uploaded')
  assert.deepEqual(fact?.properties, {
    directory: '/mods',
    files: Object.keys(files),
    count: 4,
    sizeBytes: 11,
    protocol: 'multipart',
  })
  assert.deepEqual(
    [fact?.cause?.tokenId, fact?.cause?.requestId, fact?.cause?.ip],
    ['tok_test', 'req_test', '127.0.0.1'],
  )
  assert.deepEqual(agent.staged(), [])
})

test('curl sends files as people have always done', async (t) => {
  const agent = await startAgent(t)
  const folder = makeTree(t, { 'one.jar': Buffer.alloc(3 * MIB, 7), 'two.txt': 'hello' })
  const { stdout } = await run('curl', [
    '-sS',
    '-F',
    `files=@${join(folder, 'one.jar')}`,
    '-F',
    `files=@${join(folder, 'two.txt')};filename=sub/two.txt`,
    `${await agent.uploadUrl()}?directory=%2Fmods`,
  ])
  assert.equal(JSON.parse(stdout).data.length, 2)
  assert.deepEqual(readFileSync(agent.at('mods/one.jar')), Buffer.alloc(3 * MIB, 7))
  assert.equal(agent.read('mods/sub/two.txt'), 'hello')
})

for (const name of [
  '../x',
  '/etc/x',
  'a/../../x',
  '..\\x',
  'a\0b',
  'x/',
  'x/.',
  '.',
  '%2e%2e/x',
  'a\nb',
  'y'.repeat(256),
  'trailing.',
])
  test(`a file named ${JSON.stringify(name.slice(0, 20))} is refused, and the whole request with it`, async (t) => {
    const agent = await startAgent(t)
    const { status, body } = await post(await agent.uploadUrl(), formOf({ 'good.txt': 'x', [name]: 'y' }))
    assert.deepEqual([status, body.code], [400, 'invalid_path'])
    await nothingLeft(agent)
    assert.deepEqual(await agent.facts(), [])
  })

test('a form that is not what is asked for is refused', async (t) => {
  const agent = await startAgent(t)
  const url = await agent.uploadUrl()
  const other = formOf({ 'a.txt': 'x' })
  other.append('comment', 'hello')
  const misnamed = new FormData()
  misnamed.append('file', new Blob(['x']), 'a.txt')
  const twice = formOf({ 'a.txt': 'x' })
  twice.append('files', new Blob(['y']), 'a.txt')
  for (const [body, code] of [
    [other, 'invalid_request'],
    [misnamed, 'invalid_request'],
    [new FormData(), 'invalid_request'],
    [twice, 'invalid_path'],
    [formOf({ a: 'x', 'a/b': 'y' }), 'invalid_path'],
    [formOf({ 'a/b': 'y', a: 'x' }), 'invalid_path'],
  ] as const)
    assert.equal((await post(url, body)).body.code, code)
  assert.equal((await post(`${url}?what=1`, formOf({ a: 'x' }))).status, 400)
  assert.equal((await post(`${url}?directory=../x`, formOf({ a: 'x' }))).body.code, 'invalid_path')
  assert.equal((await post(`${url}?overwrite=maybe`, formOf({ a: 'x' }))).status, 400)
  assert.equal((await post(url, 'hello', { 'content-type': 'text/plain' })).status, 415)
  // As some libraries send a large file in parts.
  const part = await post(url, formOf({ a: 'x' }), { 'content-range': 'bytes 0-0/2' })
  assert.equal(part.body.code, 'invalid_request')
  await nothingLeft(agent)
})

test('else a file is replaced and its former version goes to the trash', async (t) => {
  const agent = await startAgent(t)
  writeFileSync(agent.at('a.txt'), 'old')
  const url = await agent.uploadUrl()
  const refused = await post(`${url}?overwrite=false`, formOf({ 'new.txt': 'x', 'a.txt': 'new' }))
  assert.deepEqual([refused.status, refused.body.code], [409, 'already_exists'])
  await nothingLeft(agent, ['a.txt'])
  assert.equal(agent.read('a.txt'), 'old')
  assert.equal((await post(url, formOf({ 'a.txt': 'new' }))).status, 200)
  assert.equal(agent.read('a.txt'), 'new')
  const { items } = await agent.agent.files.listTrash({ serverId })
  assert.deepEqual(
    items.map(({ path, reason }) => [path, reason]),
    [['/a.txt', 'replaced']],
  )
})

test('a file that is there already with the same bytes is left as it is: a form that is sent again changes nothing.', async (t) => {
  const agent = await startAgent(t)
  const url = `${await agent.uploadUrl()}?directory=/mods&skipIdentical=true`
  const large = Buffer.alloc(300_000, 'x')
  const files = { 'a.txt': 'one', 'deep/b.txt': 'two', 'empty.txt': '', 'large.bin': large }
  const [first, again] = [await post(url, formOf(files)), await post(url, formOf(files))]
  assert.deepEqual([first.status, again.status], [200, 200])
  assert.deepEqual(again.body, first.body)
  assert.equal((await agent.facts()).length, 1)
  const trashed = async () => (await agent.agent.files.listTrash({ serverId })).items.map(({ path }) => path)
  assert.deepEqual(await trashed(), [])
  const changed = {
    ...files,
    'a.txt': 'ONE',
    'large.bin': Buffer.concat([large.subarray(1), Buffer.from('y')]),
    'c.txt': '3',
  }
  const { body } = await post(url, formOf(changed))
  assert.deepEqual(
    body.data.map(({ path }: { path: string }) => path),
    Object.keys(changed).map((name) => `/mods/${name}`),
  )
  assert.deepEqual((await trashed()).sort(), ['/mods/a.txt', '/mods/large.bin'])
  assert.deepEqual((await agent.facts()).at(-1)?.properties.files, ['a.txt', 'large.bin', 'c.txt'])
  assert.equal(agent.read('mods/a.txt'), 'ONE')
  // Two at once: one of them waits, and finds what the other has brought.
  const next = formOf({ 'd.txt': '4' })
  await Promise.all([post(url, next), post(url, formOf({ 'd.txt': '4' }))])
  assert.equal((await trashed()).length, 2)
  assert.equal((await agent.facts()).length, 3)
  const { usedBytes, reservedBytes } = await agent.agent.files.usage({ serverId })
  assert.equal(reservedBytes, 0)
  assert.ok(usedBytes > 0)
  assert.deepEqual(agent.staged(), [])
})

test('an upload never goes through a symlink nor into a file', async (t) => {
  const agent = await startAgent(t)
  const outside = makeTree(t, { 'victim.txt': 'safe' })
  symlinkSync(outside, agent.at('out'))
  symlinkSync(join(outside, 'victim.txt'), agent.at('victim'))
  writeFileSync(agent.at('file'), 'x')
  const url = await agent.uploadUrl()
  for (const name of ['out/x', 'victim', 'file/x'])
    assert.equal((await post(url, formOf({ [name]: 'evil' }))).body.code, 'invalid_path')
  assert.deepEqual(readdirSync(outside), ['victim.txt'])
  assert.equal(readFileSync(join(outside, 'victim.txt'), 'utf8'), 'safe')
})

test('a file beyond the limit stops its sender early, who hears why', async (t) => {
  const agent = await startAgent(t)
  const url = await agent.uploadUrl(MIB)
  const request = begin(url)
  const sending = new AbortController()
  let sent = 0
  const response = once(request, 'response') as Promise<[import('node:http').IncomingMessage]>
  void (async () => {
    while (!sending.signal.aborted && sent < 500 * MIB) {
      sent += 64 * 1024
      if (!request.write(Buffer.alloc(64 * 1024)))
        await Promise.race([once(request, 'drain'), once(sending.signal, 'abort')])
    }
  })()
  const [answer] = await response
  const text = (await answer.toArray()).join('')
  sending.abort()
  request.destroy()
  assert.deepEqual([answer.statusCode, JSON.parse(text).code, answer.headers.connection], [413, 'too_large', 'close'])
  assert.ok(sent < 100 * MIB, `${sent} bytes were sent`)
  await nothingLeft(agent)
})

test('curl gets the answer to a refused upload while it is still sending', async (t) => {
  const agent = await startAgent(t)
  const folder = makeTree(t, { 'big.bin': Buffer.alloc(200 * MIB) })
  const url = await agent.uploadUrl(MIB)
  const { stdout } = await run('curl', [
    '-sS',
    '-F',
    `files=@${join(folder, 'big.bin')}`,
    '-w',
    '\n%{http_code} %{size_upload}',
    url,
  ])
  const [body = '', tail = ''] = stdout.split('\n')
  const [status, uploaded] = tail.split(' ').map(Number)
  assert.deepEqual([JSON.parse(body).code, status], ['too_large', 413])
  assert.ok((uploaded ?? 0) < 150 * MIB, `${uploaded} bytes were sent`)
})

test('concurrent uploads share it', async (t) => {
  const agent = await startAgent(t)
  await agent.agent.files.setQuota({ serverId, quotaBytes: 10 * MIB, maxEntries: null })
  const url = await agent.uploadUrl()
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, index) => post(url, formOf({ [`f${index}`]: Buffer.alloc(MIB, index) }))),
  )
  const accepted = results.filter(({ status }) => status === 200)
  for (const { status, body } of results) if (status !== 200) assert.equal(body.code, 'quota_exceeded')
  assert.ok(accepted.length >= 1 && accepted.length <= 10, `${accepted.length} were taken`)
  assert.equal(agent.tree().length, accepted.length)
  await until(() => agent.staged().length === 0)
  const usage = await agent.agent.files.usage({ serverId })
  assert.equal(usage.reservedBytes, 0)
  assert.equal(usage.usedBytes, accepted.length * MIB)
})

test('an announced body that the quota cannot hold is refused before it arrives', async (t) => {
  const agent = await startAgent(t)
  await agent.agent.files.setQuota({ serverId, quotaBytes: 10 * MIB, maxEntries: null })
  const request = begin(await agent.uploadUrl(), 'big.bin', { 'content-length': String(100 * MIB) })
  const [answer] = await once(request, 'response')
  assert.equal(answer.statusCode, 409)
  request.destroy()
  await nothingLeft(agent)
})

test('a connection cut anywhere leaves nothing behind', async (t) => {
  const agent = await startAgent(t)
  for (const bytes of [0, 10, 70_000, 3 * MIB]) {
    const request = begin(await agent.uploadUrl())
    await new Promise((resolve) => request.write(Buffer.alloc(bytes, 1), resolve))
    await until(() => agent.staged().length > 0)
    request.destroy()
    await nothingLeft(agent)
  }
  assert.deepEqual(
    openDescriptors().filter((path) => path.includes(agent.folders.root)),
    [],
  )
})

test('a body that ends before its form does is refused', async (t) => {
  const agent = await startAgent(t)
  const request = begin(await agent.uploadUrl())
  request.end('half')
  const [answer] = await once(request, 'response')
  assert.equal(answer.statusCode, 400)
  answer.resume()
  await nothingLeft(agent)
})

test('stops working at once when the token that requested it is revoked, which also ends transfers under way', async (t) => {
  const agent = await startAgent(t)
  const doomed = begin(await agent.uploadUrl())
  const other = begin(await agent.uploadUrl(MIB, { tokenId: 'tok_other' }), 'other.bin')
  doomed.write('some bytes')
  await until(() => agent.staged().length === 2)
  const answered = once(doomed, 'response')
  await agent.agent.links.revoke({ tokenIds: ['tok_test'] })
  const [answer] = await answered
  assert.equal(answer.statusCode, 404)
  doomed.destroy()
  other.end('hello\r\n--x--\r\n')
  const [kept] = await once(other, 'response')
  assert.equal(kept.statusCode, 200)
  kept.resume()
  assert.equal((await post(await agent.uploadUrl(), formOf({ a: 'x' }))).status, 404)
  await nothingLeft(agent, ['other.bin'])
})

test('Any other invalid link is not_found.', async (t) => {
  const agent = await startAgent(t)
  const good = await agent.uploadUrl()
  const base = good.slice(0, good.lastIndexOf('/'))
  const detail = { uploadId: 'upl_x', maxBytes: MIB, path: '/a' }
  const links = [
    await agent.sign('download', detail),
    await agent.sign('read-content', detail),
    await agent.sign('write-content', detail),
    await agent.sign('download-backup', detail),
    await agent.sign('upload', detail, { serverId: 'srv_other' }),
    `${good.slice(good.lastIndexOf('/') + 1, -3)}abc`,
    'x',
    'x'.repeat(9000),
  ]
  for (const link of links) {
    const { status, body } = await post(`${base}/${link}`, formOf({ 'a.txt': 'x' }))
    assert.deepEqual([status, body.code], [404, 'not_found'])
    const tus = await fetch(`${base}/${link}`, {
      method: 'POST',
      headers: { 'tus-resumable': '1.0.0', 'upload-length': '1' },
    })
    assert.equal(tus.status, 404)
  }
  await nothingLeft(agent)
})

test('An upload link is renewed while bytes arrive through it, for six days at most.', async (t) => {
  const agent = await startAgent(t)
  const [idle, busy] = [await agent.uploadUrl(), await agent.uploadUrl()]
  const running = begin(busy)
  await until(() => agent.staged().length === 1)
  agent.pass(14 * 60_000)
  await new Promise((resolve) => running.write('bytes', resolve))
  assert.equal((await post(busy, formOf({ 'b.txt': 'x' }))).status, 200)
  agent.pass(10 * 60_000)
  assert.equal((await post(idle, formOf({ 'a.txt': 'x' }))).status, 404)
  assert.equal((await post(busy, formOf({ 'c.txt': 'x' }))).status, 200)
  running.end('\r\n--x--\r\n')
  const [answer] = await once(running, 'response')
  assert.equal(answer.statusCode, 200, 'a running request is never cut')
  answer.resume()
  agent.pass(16 * 60_000)
  assert.equal((await post(busy, formOf({ 'd.txt': 'x' }))).status, 404)
})

test('a full disk is said so, the old file is intact and nothing is left', { skip: withoutRoot() }, async (t) => {
  const agent = await onSmallDisk(t)
  await agent.run(async (small) => {
    writeFileSync(small.at('a.txt'), 'old')
    const { status, body } = await post(
      await small.uploadUrl(),
      formOf({ 'b.txt': 'x', 'a.txt': Buffer.alloc(40 * MIB) }),
    )
    assert.deepEqual([status, body.code], [507, 'disk_full'])
    await nothingLeft(small, ['a.txt'])
    assert.equal(small.read('a.txt'), 'old')
  })
})

async function onSmallDisk(t: TestContext) {
  const dataDir = makeTree(t, { 'servers/': '' })
  return {
    async run(work: (agent: TestAgent) => Promise<void>) {
      mkdirSync(join(dataDir, 'servers', serverId), { recursive: true })
      using _mounted = mount(join(dataDir, 'servers', serverId), '-t', 'tmpfs', '-o', 'size=32m', 'tmpfs')
      await work(await startAgent(t, dataDir))
    },
  }
}

test('a request that is broken off in its headers harms nobody', async (t) => {
  const agent = await startAgent(t)
  const { pathname } = new URL(await agent.uploadUrl())
  const socket = connect(agent.port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(
    `POST ${pathname} HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=x\r\ncontent-length: 10\r\n\r\n--x`,
  )
  socket.destroy()
  await nothingLeft(agent)
})

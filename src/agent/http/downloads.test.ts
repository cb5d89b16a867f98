import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { fillTree, makeTree, openDescriptors } from '../files/trees.testing.ts'
import { serverId, startAgent, until } from './agent.testing.ts'
import { parseRange } from './ranges.ts'

const MIB = 1024 * 1024

async function get(url: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(url, { headers, method })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

test('a range lies within the file, whatever is asked for', () => {
  fc.assert(
    fc.property(fc.nat(2000), fc.option(fc.nat(3000)), fc.option(fc.nat(3000)), (size, from, to) => {
      const range = parseRange(`bytes=${from ?? ''}-${to ?? ''}`, size)
      if (range === undefined || range === 'unsatisfiable') return
      assert.ok(range.start >= 0 && range.start <= range.end && range.end < size)
    }),
  )
  assert.deepEqual(parseRange('bytes=0-0', 10), { start: 0, end: 0 })
  assert.deepEqual(parseRange('bytes=-3', 10), { start: 7, end: 9 })
  assert.deepEqual(parseRange('bytes=4-', 10), { start: 4, end: 9 })
  assert.equal(parseRange('bytes=10-', 10), 'unsatisfiable')
  assert.equal(parseRange('bytes=-0', 10), 'unsatisfiable')
  for (const text of ['bytes=5-3', 'bytes=0-1,3-4', 'lines=0-1', 'bytes=a-b', 'bytes=-', undefined])
    assert.equal(parseRange(text, 10), undefined)
})

test('a file is downloaded whole, in part, or not again', async (t) => {
  const agent = await startAgent(t)
  fillTree(agent.folders.files, { 'mods/ü "x".html': '0123456789' })
  const url = await agent.downloadUrl('/mods/ü "x".html')
  const whole = await get(url)
  assert.deepEqual([whole.status, whole.text], [200, '0123456789'])
  const { headers } = whole
  assert.equal(
    headers.get('content-disposition'),
    `attachment; filename="_ _x_.html"; filename*=UTF-8''%C3%BC%20%22x%22.html`,
  )
  assert.deepEqual(
    [headers.get('accept-ranges'), headers.get('content-length'), headers.get('x-content-type-options')],
    ['bytes', '10', 'nosniff'],
  )
  const [etag, modified] = [headers.get('etag') ?? '', headers.get('last-modified') ?? '']
  const part = await get(url, { range: 'bytes=2-4' })
  assert.deepEqual([part.status, part.text, part.headers.get('content-range')], [206, '234', 'bytes 2-4/10'])
  assert.equal((await get(url, { range: 'bytes=2-', 'if-range': etag })).status, 206)
  assert.equal((await get(url, { range: 'bytes=2-', 'if-range': modified })).status, 206)
  const changed = await get(url, { range: 'bytes=2-', 'if-range': '"other"' })
  assert.deepEqual([changed.status, changed.text], [200, '0123456789'])
  const beyond = await get(url, { range: 'bytes=10-' })
  assert.deepEqual([beyond.status, beyond.headers.get('content-range')], [416, 'bytes */10'])
  // Nobody saves a refusal under the name of the file.
  for (const refused of [beyond, await get(url, { 'if-match': '"x"' })])
    assert.equal(refused.headers.get('content-disposition'), null)
  assert.equal((await get(url, { 'if-none-match': `"x", ${etag}` })).status, 304)
  assert.equal((await get(url, { 'if-modified-since': modified })).status, 304)
  const head = await get(url, {}, 'HEAD')
  const [known, before] = [`"x", ${etag}`, new Date(Date.parse(modified) - 1000).toUTCString()]
  for (const [condition, expected] of [
    [{ 'if-match': known }, 206],
    [{ 'if-match': '*' }, 206],
    [{ 'if-match': '"x"' }, 412],
    [{ 'if-unmodified-since': modified }, 206],
    [{ 'if-unmodified-since': before }, 412],
    [{ 'if-match': known, 'if-unmodified-since': before }, 206],
    [{ 'if-unmodified-since': 'no time' }, 206],
    [{ 'if-unmodified-since': '1' }, 206],
    [{ 'if-match': `W/${etag}` }, 412],
    [{ 'if-none-match': `W/${etag}` }, 304],
  ] as const)
    assert.equal((await get(url, { range: 'bytes=2-4', ...condition })).status, expected)
  assert.deepEqual([head.status, head.text, head.headers.get('content-length')], [200, '', '10'])
  // A client has the last byte before the end of the file was read.
  await until(() => openDescriptors().every((path) => !path.includes(agent.folders.root)))
})

test('curl resumes a download where it was cut', async (t) => {
  const agent = await startAgent(t)
  const content = randomBytes(2 * MIB)
  writeFileSync(agent.at('big.bin'), content)
  const target = join(makeTree(t), 'out')
  writeFileSync(target, content.subarray(0, 700_000))
  const url = await agent.downloadUrl('/big.bin')
  await promisify(execFile)('curl', ['-sS', '-C', '-', '-o', target, url])
  assert.deepEqual(readFileSync(target), content)
})

test('A FIFO, socket or device is never opened.', async (t) => {
  const agent = await startAgent(t)
  const outside = makeTree(t, { secret: 'secret' })
  symlinkSync(join(outside, 'secret'), agent.at('link'))
  symlinkSync(outside, agent.at('linked'))
  mkdirSync(agent.at('folder'))
  execFileSync('mkfifo', [agent.at('fifo')])
  for (const path of ['/link', '/linked/secret', '/folder', '/fifo'])
    assert.equal((await get(await agent.downloadUrl(path))).status, 400)
  assert.equal((await get(await agent.downloadUrl('/fifo', 'zip'))).status, 400)
  assert.equal((await get(await agent.downloadUrl('/linked', 'zip'))).status, 400)
  assert.equal((await get(await agent.downloadUrl('/absent'))).status, 404)
  assert.equal((await get(await agent.downloadUrl('/absent', 'tar.zst'))).status, 404)
})

test('Upload and download links are signed for one purpose, one server and fifteen minutes.', async (t) => {
  const agent = await startAgent(t)
  writeFileSync(agent.at('a'), 'x')
  const url = await agent.downloadUrl('/a')
  const base = url.slice(0, url.lastIndexOf('/'))
  const detail = { path: '/a', format: 'raw', uploadId: 'upl_x', maxBytes: 1 }
  for (const purpose of ['upload', 'read-content', 'write-content', 'download-backup'] as const)
    assert.equal((await get(`${base}/${await agent.sign(purpose, detail)}`)).status, 404)
  assert.equal((await get(url)).status, 200)
  agent.pass(16 * 60_000)
  assert.equal((await get(url)).status, 404)
})

/** Begins to read and then waits. */
async function slowly(url: string): Promise<IncomingMessage> {
  const request = httpRequest(url).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.pause()
  return response
}

test('a revoked token ends a download under way', async (t) => {
  const agent = await startAgent(t)
  writeFileSync(agent.at('big'), Buffer.alloc(50 * MIB))
  const response = await slowly(await agent.downloadUrl('/big'))
  await agent.agent.links.revoke({ tokenIds: ['tok_test'] })
  await assert.rejects(response.toArray())
  await until(() => openDescriptors().every((path) => !path.includes(agent.folders.root)))
})

test('a file that is cut while it is sent ends the answer, which then lacks bytes', async (t) => {
  const agent = await startAgent(t)
  writeFileSync(agent.at('big'), Buffer.alloc(50 * MIB))
  const response = await slowly(await agent.downloadUrl('/big'))
  truncateSync(agent.at('big'), 10 * MIB)
  await assert.rejects(response.toArray())
})

for (const [format, unpack] of [
  ['zip', (archive: string, to: string) => execFileSync('unzip', ['-q', archive, '-d', to])],
  ['tar', (archive: string, to: string) => execFileSync('tar', ['-xf', archive, '-C', to])],
  ['tar.gz', (archive: string, to: string) => execFileSync('tar', ['-xzf', archive, '-C', to])],
  ['tar.zst', (archive: string, to: string) => execFileSync('tar', ['--zstd', '-xf', archive, '-C', to])],
] as const)
  test(`a directory comes as ${format}, which the usual tools unpack`, async (t) => {
    const agent = await startAgent(t)
    const content = randomBytes(MIB)
    fillTree(agent.folders.files, {
      'world/region/r.mca': content,
      'world/level.dat': 'level',
      'world/empty/': '',
      other: 'x',
    })
    const response = await fetch(await agent.downloadUrl('/world', format))
    assert.match(response.headers.get('content-disposition') ?? '', new RegExp(`filename="world.${format}"`))
    const folder = makeTree(t)
    const archive = join(folder, 'archive')
    writeFileSync(archive, Buffer.from(await response.arrayBuffer()))
    const to = makeTree(t)
    unpack(archive, to)
    assert.deepEqual(readFileSync(join(to, 'world/region/r.mca')), content)
    assert.equal(readFileSync(join(to, 'world/level.dat'), 'utf8'), 'level')
    assert.ok(statSync(join(to, 'world/empty')).isDirectory())
    assert.throws(() => statSync(join(to, 'other')))
  })

test('content is read with its tag and written only over the version that was read', async (t) => {
  const agent = await startAgent(t)
  const put = async (body: string, detail: Record<string, string | boolean | number | null> = {}) => {
    const url = await agent.contentUrl('write-content', {
      path: '/a.txt',
      ifMatch: null,
      overwrite: true,
      maxBytes: 100,
      ...detail,
    })
    const response = await fetch(url, { method: 'PUT', body, headers: { 'content-type': 'text/plain' } })
    return {
      status: response.status,
      etag: response.headers.get('etag') ?? '',
      body: JSON.parse(await response.text()),
    }
  }
  const made = await put('one')
  assert.deepEqual([made.status, made.body.path, made.body.sizeBytes], [201, '/a.txt', 3])
  const read = await agent.contentUrl('read-content', { path: '/a.txt' })
  assert.equal((await get(read)).headers.get('etag'), made.etag)
  assert.equal((await get(read, { 'if-none-match': made.etag })).status, 304)
  assert.equal((await get(read, { range: 'bytes=1-1' })).text, 'n')
  const changed = await put('two', { ifMatch: made.etag })
  assert.equal(changed.status, 200)
  assert.equal((await put('three', { ifMatch: made.etag })).body.code, 'precondition_failed')
  assert.equal((await put('two', { ifMatch: `"x", ${changed.etag}` })).status, 200)
  assert.equal((await put('three', { overwrite: false })).body.code, 'already_exists')
  assert.equal((await put('x'.repeat(101))).body.code, 'too_large')
  assert.equal(agent.read('a.txt'), 'two')
  const facts = await agent.facts()
  assert.deepEqual(
    facts.map(({ kind, properties }) => [kind, properties]),
    [
      ['file.written', { path: '/a.txt', sizeBytes: 3 }],
      ['file.written', { path: '/a.txt', sizeBytes: 3 }],
      ['file.written', { path: '/a.txt', sizeBytes: 3 }],
    ],
  )
  assert.equal((await agent.agent.files.listTrash({ serverId })).items.length, 2)
})

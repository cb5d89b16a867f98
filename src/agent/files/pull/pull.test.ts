import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { type ErrorCode, isFailure } from '../../../contract/errors.ts'
import { layout } from '../../layout.ts'
import { createAgentFiles } from '../index.ts'
import { makeTree } from '../trees.testing.ts'
import { isPublicAddress } from './addresses.ts'
import { PULL_OPTIONS, type PullOptions, pull } from './pull.ts'

const code = (expected: ErrorCode) => (error: unknown) => isFailure(error, expected)
const serverId = 'srv_test'

async function start(t: TestContext, answer: RequestListener) {
  const places = layout(makeTree(t, { [`servers/${serverId}/files/`]: '' }))
  const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
  const server = agent.server(serverId)
  const hits: string[] = []
  const web = createServer((request, response) => {
    hits.push(`${request.headers.host} ${request.url}`)
    answer(request, response)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => web.once('listening', resolve))
  t.after(() => {
    web.closeAllConnections()
    web.close()
  })
  const { port } = web.address() as AddressInfo
  const abort = new AbortController()
  let tasks = 0
  const fetchFrom = (url: string, options: Partial<PullOptions> = {}, name?: string, taskId = `job_${++tasks}`) =>
    pull(
      server,
      { kind: 'files.pull', url, directory: '/mods', ...(name === undefined ? {} : { name }) },
      { taskId, serverId: server.serverId, signal: abort.signal, report: () => {} },
      { ...PULL_OPTIONS, ...options },
    )
  /** Lets the test reach its own server by one name, as if it were public. */
  const open = {
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    isAllowed: (address: string) => address === '127.0.0.1',
  }
  const left = () => [readdirSync(server.folders.files), readdirSync(server.folders.staging)].flat()
  return {
    agent,
    server,
    port,
    hits,
    fetchFrom,
    open,
    abort,
    left,
    at: (path: string) => join(server.folders.files, path),
  }
}

test('begun again after a crash, a pull answers with what it has fetched already', async (t) => {
  const { port, fetchFrom, open, hits } = await start(t, (_request, response) => response.end('jar'))
  const url = `http://files.example:${port}/mod.jar`
  const first = await fetchFrom(url, open, undefined, 'job_again')
  const asked = hits.length
  assert.deepEqual(await fetchFrom(url, open, undefined, 'job_again'), first)
  assert.equal(hits.length, asked, 'it was fetched twice')
  await assert.rejects(fetchFrom(url, open, undefined, 'job_other'), code('already_exists'))
})

test('a file is fetched, through redirects, under the name that it is given or has', async (t) => {
  const { port, fetchFrom, open, at } = await start(t, (request, response) => {
    if (request.url === '/go') response.writeHead(302, { location: '/files/my%20mod.jar?x=1' }).end()
    else if (request.url === '/named')
      response.writeHead(200, { 'content-disposition': 'attachment; filename="b.zip"' }).end('b')
    else if (request.url === '/evil')
      response.writeHead(200, { 'content-disposition': 'attachment; filename="../../x"' }).end('e')
    else response.end('jar')
  })
  const from = `http://files.example:${port}`
  assert.equal((await fetchFrom(`${from}/go`, open)).path, '/mods/my mod.jar')
  assert.equal(readFileSync(at('mods/my mod.jar'), 'utf8'), 'jar')
  assert.equal((await fetchFrom(`${from}/named`, open)).path, '/mods/b.zip')
  assert.equal((await fetchFrom(`${from}/evil`, open)).path, '/mods/evil')
  assert.equal((await fetchFrom(`${from}/x`, open, 'c.jar')).path, '/mods/c.jar')
  await assert.rejects(fetchFrom(`${from}/x`, open, 'c.jar'), code('already_exists'))
  await assert.rejects(fetchFrom(`${from}/x`, open, '../c.jar'), code('invalid_path'))
})

describe('Fetching a file from a URL never reaches loopback, private or link-local addresses, not even by a redirect or DNS rebinding.', () => {
  test('addresses inside are never connected to, however they are written', async (t) => {
    const { port, hits, fetchFrom, left } = await start(t, (_, response) => response.end('secret'))
    const hosts = [
      '127.0.0.1',
      'localhost',
      '[::1]',
      '0x7f000001',
      '2130706433',
      '0177.0.0.1',
      '127.1',
      '[::ffff:127.0.0.1]',
      '0.0.0.0',
      '[::]',
      '[64:ff9b::7f00:1]',
      '10.0.0.1',
      '169.254.169.254',
      '[fe80::1]',
      '[fd00::1]',
      '224.0.0.1',
      '100.64.0.1',
    ]
    for (const host of hosts) await assert.rejects(fetchFrom(`http://${host}:${port}/`), code('invalid_url'), host)
    for (const url of [
      'file:///etc/passwd',
      'ftp://example.org/x',
      'gopher://x',
      'nonsense',
      'http://u:p@example.org/',
    ])
      await assert.rejects(fetchFrom(url), code('invalid_url'), url)
    assert.deepEqual(hits, [])
    assert.deepEqual(left(), [])
  })

  test('a redirect to the inside is refused', async (t) => {
    const { port, hits, fetchFrom, open, left } = await start(t, (request, response) => {
      if (request.url === '/start') response.writeHead(302, { location: `http://inside.example:${port}/secret` }).end()
      else if (request.url === '/literal')
        response.writeHead(307, { location: `http://127.0.0.2:${port}/secret` }).end()
      else if (request.url === '/file') response.writeHead(302, { location: 'file:///etc/passwd' }).end()
      else if (request.url === '/loop') response.writeHead(302, { location: '/loop' }).end()
      else response.end('secret')
    })
    const resolve = async (host: string) => [
      { address: host === 'inside.example' ? '127.0.0.3' : '127.0.0.1', family: 4 },
    ]
    for (const path of ['start', 'literal', 'file', 'loop'])
      await assert.rejects(
        fetchFrom(`http://out.example:${port}/${path}`, { ...open, resolve }),
        code('invalid_url'),
        path,
      )
    assert.ok(!hits.some((hit) => hit.endsWith('/secret')))
    assert.deepEqual(left(), [])
  })

  test('the connection goes to the address that was checked', async (t) => {
    const { port, fetchFrom, open } = await start(t, (_, response) => response.end('checked'))
    let lookups = 0
    const rebinding = async () => [{ address: lookups++ === 0 ? '127.0.0.1' : '127.0.0.9', family: 4 }]
    assert.equal((await fetchFrom(`http://rebind.example:${port}/f`, { ...open, resolve: rebinding })).sizeBytes, 7)
    assert.equal(lookups, 1)
    const mixed = async () => [
      { address: '127.0.0.1', family: 4 },
      { address: '127.0.0.9', family: 4 },
    ]
    await assert.rejects(fetchFrom(`http://mixed.example:${port}/g`, { ...open, resolve: mixed }), code('invalid_url'))
  })
})

test('size, quota, time and broken connections end it and leave nothing', async (t) => {
  const { agent, port, fetchFrom, open, left, abort } = await start(t, (request, response) => {
    if (request.url === '/endless') {
      const more = () => {
        while (response.write(Buffer.alloc(65_536)));
      }
      response.on('drain', more)
      more()
    } else if (request.url === '/said') response.writeHead(200, { 'content-length': '1000000000' }).flushHeaders()
    else if (request.url === '/silent') response.writeHead(200).flushHeaders()
    else if (request.url === '/broken')
      response.writeHead(200, { 'content-length': '100' }).write('x', () => response.destroy())
    else response.writeHead(404).end()
  })
  const from = `http://files.example:${port}`
  await assert.rejects(fetchFrom(`${from}/endless`, { ...open, maxBytes: 1_000_000 }), code('too_large'))
  await assert.rejects(fetchFrom(`${from}/said`, { ...open, maxBytes: 1_000_000 }), code('too_large'))
  await assert.rejects(fetchFrom(`${from}/silent`, { ...open, maxMs: 200 }), code('invalid_url'))
  await assert.rejects(fetchFrom(`${from}/silent`, { ...open, idleMs: 100 }), code('invalid_url'))
  await assert.rejects(fetchFrom(`${from}/broken`, open), code('invalid_url'))
  await assert.rejects(fetchFrom(`${from}/missing`, open), code('invalid_url'))
  await agent.setQuota({ serverId, quotaBytes: 1_000_000, maxEntries: null })
  await assert.rejects(fetchFrom(`${from}/endless`, open), code('quota_exceeded'))
  await assert.rejects(fetchFrom(`${from}/said`, open), code('quota_exceeded'))
  const cancelled = fetchFrom(`${from}/silent`, open)
  abort.abort()
  await assert.rejects(cancelled, { name: 'AbortError' })
  assert.deepEqual(left(), [])
})

test('no address that stands for a private one counts as public', () => {
  const privateV4 = fc.oneof(
    fc.tuple(fc.constantFrom(0, 10, 127, 224, 239, 240, 255), fc.nat(255), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(192), fc.constant(168), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(169), fc.constant(254), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), fc.nat(255), fc.nat(255)),
  )
  fc.assert(
    fc.property(privateV4, (parts) => {
      const v4 = parts.join('.')
      const hex = parts.map((part) => part.toString(16).padStart(2, '0'))
      const tail = `${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`
      for (const address of [
        v4,
        `::ffff:${v4}`,
        `::${tail}`,
        `64:ff9b::${tail}`,
        `2002:${tail}::1`,
        `::ffff:0:${tail}`,
      ])
        assert.ok(!isPublicAddress(address), address)
    }),
  )
  for (const address of ['8.8.8.8', '1.1.1.1', '172.15.0.1', '2606:4700::1111', '2a00:1450::1'])
    assert.ok(isPublicAddress(address))
  for (const address of ['', 'localhost', 'fe80::1%eth0', '2001:db8::1', '2001::1', 'ff02::1'])
    assert.ok(!isPublicAddress(address))
})

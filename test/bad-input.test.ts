// Everything that a broken or hostile client may send: a coded 4xx that names the fault, nothing changed, no stack trace.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { onBothEngines } from './support/engines.ts'
import { sendRaw } from './support/raw.ts'
import { type Reply, startTestService, type TestService } from './support/service.ts'

onBothEngines('bad input', (engine) => {
  let service: TestService
  let serverId: string
  before(async () => {
    service = await startTestService({ engine })
    serverId = (await service.createServer()).id
  })
  after(() => service.stop())

  /** Everything that a client can see, to show that nothing has changed. */
  const world = async () =>
    JSON.stringify([
      (await service.call('GET', '/servers')).body,
      (await service.call('GET', '/activity')).body,
      (await service.call('GET', '/tokens')).body.data.map(
        ({ lastUsedAt: _, ...rest }: { lastUsedAt: unknown }) => rest,
      ),
    ])

  function isProblem(reply: Pick<Reply, 'status' | 'headers' | 'text' | 'body'>, status: number, code: string): void {
    assert.equal(reply.status, status, reply.text)
    assert.equal(reply.headers.get('content-type'), 'application/problem+json')
    assert.equal(reply.body.code, code)
    assert.equal(reply.body.status, status)
    assert.equal(reply.body.requestId, reply.headers.get('x-request-id'))
    assert.doesNotMatch(reply.text, /node_modules|\.ts:\d|\bat \w+ \(/)
  }

  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  const json = { 'content-type': 'application/json' }
  const faults: Record<string, { body: unknown; path: string | null; headers?: Record<string, string> }> = {
    'malformed JSON': { body: '{"name": ', headers: json, path: '' },
    'an unknown field': { body: { name: 'x', colour: 'red' }, path: '/colour' },
    'a wrong type': { body: { name: 7 }, path: '/name' },
    'a number as text': { body: { name: 'x', port: '25565' }, path: '/port' },
    'an array for an object': { body: [], path: '' },
    'an empty string': { body: { name: '' }, path: '/name' },
    'only blanks': { body: { name: ' \u00a0 ' }, path: '/name' },
    'an over-long string': { body: { name: 'x'.repeat(192) }, path: '/name' },
    'a control character': { body: { name: 'a\u0007b' }, path: '/name' },
    'a NUL': { body: { name: 'a\u0000b' }, path: '/name' },
    'a line separator': { body: { name: 'a\u2028b' }, path: '/name' },
    'a lone surrogate': { body: '{"name": "a\\ud800b"}', headers: json, path: '/name' },
    'a half port': { body: { name: 'x', port: 1.5 }, path: '/port' },
    'port zero': { body: { name: 'x', port: 0 }, path: '/port' },
    'a number beyond all numbers': { body: '{"name": "x", "port": 1e999}', headers: json, path: '/port' },
    'a limit below zero': { body: { name: 'x', limits: { backups: -1 } }, path: '/limits/backups' },
    'an unknown limit': { body: { name: 'x', limits: { cpu: 1 } }, path: '/limits/cpu' },
    'a game that we do not know': { body: { name: 'x', game: 'chess' }, path: '/game' },
    'a label that is no text': { body: { name: 'x', labels: { a: 1 } }, path: '/labels/a' },
    'a label with a bad name': { body: { name: 'x', labels: { 'A b': 'c' } }, path: '/labels/A b' },
    'too many labels': {
      body: { name: 'x', labels: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`l${i}`, ''])) },
      path: '/labels',
    },
    'a missing field': { body: {}, path: '/name' },
    'no body': { body: undefined, path: '/name' },
    'a prototype': { body: '{"name": "x", "__proto__": {"admin": true}}', headers: json, path: '' },
    'a hidden prototype': { body: '{"name": "x", "labels": {"__proto__": "x"}}', headers: json, path: '' },
    'a constructor': { body: '{"name": "x", "constructor": {"prototype": {}}}', headers: json, path: '/constructor' },
    'invalid UTF-8': { body: Buffer.from([0x22, 0xff, 0xfe, 0x22]), headers: json, path: '' },
    'deep nesting': { body: nested(400_000), headers: json, path: '' },
    'nesting where text belongs': { body: `{"name": ${nested(1000)}}`, headers: json, path: '/name' },
    'a million characters': { body: { name: 'x', description: 'é'.repeat(500_000) }, path: '/description' },
    'a million blanks': { body: { name: ' '.repeat(1_000_000) }, path: '/name' },
    'two JSON values': { body: '{"name": "x"} {"name": "y"}', headers: json, path: '' },
  }

  const many = (value: string) => `[${Array(200_000).fill(value).join()}]`
  const overfull: Record<string, string> = {
    brackets: nested(500_000),
    'brackets in a field': `{"name": "x\\\\", "labels": ${nested(400_000)}}`,
    numbers: `{"name": "\\"x\\"", "labels": ${many('1')}}`,
    'empty lists': `{"labels": ${many('[]')}}`,
    fields: JSON.stringify(Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`k${i}`, 1]))),
  }
  for (const [name, body] of Object.entries(overfull)) {
    test(`a megabyte of ${name} is refused before it is parsed`, async () => {
      const reply = await service.call('POST', '/servers', { body, headers: json })
      isProblem(reply, 400, 'invalid_request')
      assert.equal(reply.body.detail, 'The body has more values than any request takes.')
    })
  }

  test('a body of any size whose text only looks like many values is read', async () => {
    const description = `${'[{,"\\'.repeat(20_000)}`
    const reply = await service.call('POST', '/servers', { body: { name: 'x', description } })
    isProblem(reply, 400, 'invalid_request')
    assert.deepEqual(
      reply.body.errors.map((fault: { path: string }) => fault.path),
      ['/description'],
    )
  })

  for (const [name, { body, headers, path }] of Object.entries(faults)) {
    test(`${name} is named`, async () => {
      const before = await world()
      const reply = await service.call('POST', '/servers', { body, ...(headers ? { headers } : {}) })
      isProblem(reply, 400, 'invalid_request')
      const named = reply.body.errors.map((fault: { path: string }) => fault.path)
      assert.ok(named.includes(path), `${reply.text} names ${path}`)
      assert.equal(await world(), before)
    })
  }

  test('errors names every field at fault, not just the first.', async () => {
    const reply = await service.call('POST', '/servers', { body: { name: '', port: 0, game: 'Chess!', extra: 1 } })
    const named = reply.body.errors.map((fault: { path: string }) => fault.path).toSorted()
    assert.deepEqual([...new Set(named)], ['/extra', '/game', '/name', '/port'])
  })

  test('a body that is not JSON is refused by its type', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'nonsense',
    ]) {
      const reply = await service.call('POST', '/servers', { body: '{"name": "x"}', headers: { 'content-type': type } })
      isProblem(reply, 415, 'unsupported_media_type')
    }
    const untyped = await sendRaw(service.url, post('/servers', ['content-length: 13']), '{"name": "x"}')
    isProblem(untyped, 415, 'unsupported_media_type')
  })

  test('a larger body is too_large', async () => {
    const filler = (size: number) => `{"name": "${'x'.repeat(size - 12)}"}`
    const whole = await service.call('POST', '/servers', { body: filler(1024 * 1024), headers: json })
    isProblem(whole, 400, 'invalid_request')
    const over = await service.call('POST', '/servers', { body: filler(1024 * 1024 + 1), headers: json })
    isProblem(over, 413, 'too_large')
  })

  test('a body that announces no length is cut off at the limit', async () => {
    const chunk = `${(64 * 1024).toString(16)}\r\n${' '.repeat(64 * 1024)}\r\n`
    const head = post('/servers', ['transfer-encoding: chunked', 'content-type: application/json'])
    isProblem(await sendRaw(service.url, head, ...Array(17).fill(chunk)), 413, 'too_large')
  })

  test('a body where none belongs is refused', async () => {
    const before = await world()
    isProblem(await service.call('DELETE', '/tokens/tok_x', { body: { a: 1 } }), 400, 'invalid_request')
    for (const body of ['{"a":1}', '[]', 'x', '{}{}', `{${' '.repeat(2000)}}`, '{} '.padEnd(100_000, 'x')]) {
      const head = request('GET', `/servers/${serverId}`, [`content-length: ${body.length}`])
      isProblem(await sendRaw(service.url, head, body), 400, 'invalid_request')
    }
    const chunked = request('GET', `/servers/${serverId}`, ['transfer-encoding: chunked'])
    isProblem(await sendRaw(service.url, chunked, '3\r\n[1]\r\n0\r\n\r\n'), 400, 'invalid_request')
    assert.equal(await world(), before)
  })

  test('an operation without a body takes an empty one, whatever type the client adds', async () => {
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'nonsense']) {
      const { id } = await service.mint(['servers:read'])
      const reply = await service.call('DELETE', `/tokens/${id}`, { headers: { 'content-type': type } })
      assert.equal(reply.status, 204, `${type}: ${reply.text}`)
    }
    const { id } = await service.mint(['servers:read'])
    const empty = await sendRaw(service.url, request('DELETE', `/tokens/${id}`, ['content-length: 0']))
    assert.equal(empty.status, 204)
  })

  test('ids of the wrong kind are not found', async () => {
    const { id: tokenId } = await service.mint(['servers:read'])
    for (const id of [tokenId, 'srv_', '..', '%2e%2e', '%00', 'a%00b', '%F0%9F%90%B4', '%22', "'", 'srv_%2f..%2f..']) {
      for (const path of [`/servers/${id}`, `/servers/${id}/activity`, `/servers/${serverId}/jobs/${id}`]) {
        const reply = await sendRaw(service.url, request('GET', path, []))
        assert.ok(reply.status === 404 || reply.status === 400, `${path}: ${reply.text}`)
        isProblem(reply, reply.status, reply.status === 404 ? 'not_found' : 'invalid_request')
      }
    }
  })

  test('a token that lacks the scope can name any server', async () => {
    const { token } = await service.mint(['tokens:admin'])
    for (const id of ['%00', 'srv_none', '%F0%9F%90%B4']) {
      const reply = await service.call('GET', `/servers/${id}`, { token })
      assert.ok(reply.status === 403 || reply.status === 400, reply.text)
    }
  })

  test('a list of servers with impossible ids is refused', async () => {
    for (const id of ['a\u0000b', 'x'.repeat(129), '', '\ud800', 7]) {
      const body = { name: 'x', scopes: ['servers:read'], servers: [id] }
      isProblem(await service.call('POST', '/tokens', { body }), 400, 'invalid_request')
    }
  })

  test('a path that cannot be decoded is refused with the headers of any answer', async () => {
    const reply = await sendRaw(service.url, request('GET', '/servers/%zz', []))
    isProblem(reply, 400, 'invalid_request')
    assert.equal(reply.headers.get('x-content-type-options'), 'nosniff')
  })

  test('queries are closed, and numbers in them are checked', async () => {
    const cases = [
      'limit=0',
      'limit=101',
      'limit=x',
      'limit=1.5',
      'limit=',
      'limit=1&limit=2',
      'colour=red',
      'q=',
      'q=%00',
      '__proto__=1',
    ]
    for (const query of cases) {
      isProblem(await service.call('GET', `/servers?${query}`), 400, 'invalid_request')
    }
    for (const query of [
      'event=x',
      'event=*',
      'event=a.b.c',
      'since=yesterday',
      'until=2026-13-01T00:00:00Z',
      'since=2016-12-31T23:59:60Z',
    ]) {
      isProblem(await service.call('GET', `/activity?${query}`), 400, 'invalid_request')
    }
  })

  test('A cursor is valid only for the list that issued it; an altered one is refused.', async () => {
    for (let i = 0; i < 2; i++) await service.createServer()
    const { nextCursor } = (await service.call('GET', '/servers?limit=1')).body
    const bytes = Buffer.from(nextCursor, 'base64url')
    const flipped = [0, 11, 12, bytes.length - 1].map((at) => {
      const copy = Buffer.from(bytes)
      copy[at] = (copy[at] ?? 0) ^ 1
      return copy.toString('base64url')
    })
    for (const cursor of [
      ...flipped,
      `${nextCursor}=`,
      `${nextCursor}AA`,
      'AAAA',
      'x',
      randomBytes(40).toString('base64url'),
    ]) {
      isProblem(await service.call('GET', `/servers?cursor=${encodeURIComponent(cursor)}`), 400, 'invalid_request')
    }
    isProblem(await service.call('GET', `/tokens?cursor=${nextCursor}`), 400, 'invalid_request')
    isProblem(await service.call('GET', `/servers/${serverId}/activity?cursor=${nextCursor}`), 400, 'invalid_request')
  })

  test('two Authorization headers are refused', async () => {
    const twice = request('GET', '/servers', [`authorization: Bearer ${service.adminToken}`])
    isProblem(await sendRaw(service.url, twice), 400, 'invalid_request')
  })

  test('A token in a query string is never accepted', async () => {
    for (const name of ['token', 'access_token', 'key']) {
      const reply = await service.call('GET', `/servers?${name}=${service.adminToken}`, { token: null })
      isProblem(reply, 401, 'unauthenticated')
      assert.match(reply.body.detail, /query/)
      assert.equal(reply.headers.get('www-authenticate'), 'Bearer realm="gamekeeper"')
    }
  })

  test('other forms of Authorization are refused', async () => {
    const admin = service.adminToken
    for (const header of [
      '',
      'Bearer',
      'Bearer ',
      admin,
      `Basic ${admin}`,
      `Bearer ${admin} x`,
      `Bearer ${admin}0`,
      'Bearer gk_admin_',
    ]) {
      const reply = await service.call('GET', '/servers', { token: null, headers: { authorization: header } })
      isProblem(reply, 401, 'unauthenticated')
    }
  })

  test('headers that are too large are refused as a problem', async () => {
    const reply = await sendRaw(service.url, request('GET', '/servers', [`x-huge: ${'x'.repeat(20_000)}`]))
    isProblem(reply, 431, 'headers_too_large')
  })

  test('what is not HTTP is refused as a problem', async () => {
    const broken = [
      'HELLO\r\n\r\n',
      'BREW /coffee HTTP/1.1\r\nhost: x\r\n\r\n',
      'GET / HTTP/1.1\r\nno colon here\r\n\r\n',
      'GET / HTTP/1.1\r\n\r\n',
      'POST /v1/game/servers HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      'POST /v1/game/servers HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n',
      `GET / HTTP/1.1\r\nhost: x\r\nx: a\u0000b\r\n\r\n`,
      `${randomBytes(64).toString('latin1')}\r\n\r\n`,
    ]
    for (const bytes of broken)
      isProblem(await sendRaw(service.url, Buffer.from(bytes, 'latin1')), 400, 'invalid_request')
  })

  test('other methods are not allowed, and other paths are not found', async () => {
    for (const method of ['PUT', 'PROPFIND', 'TRACE', 'MERGE']) {
      const reply = await sendRaw(service.url, request(method, '/servers', []))
      isProblem(reply, 405, 'method_not_allowed')
      assert.equal(reply.headers.get('allow'), 'GET, HEAD, POST, OPTIONS')
    }
    for (const path of ['/', '//servers', '/Servers', `/servers/${serverId}//`]) {
      isProblem(await sendRaw(service.url, request('GET', path, [])), 404, 'not_found')
    }
  })

  test('a client that goes away in the middle of a body leaves nothing behind', async () => {
    const before = await world()
    const head = post('/servers', ['content-length: 100', 'content-type: application/json'])
    const { connect } = await import('node:net')
    const { hostname, port } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    socket.end(`${head}{"name": "x"`)
    socket.resume()
    await new Promise((resolve) => socket.once('close', resolve))
    assert.equal(await world(), before)
  })

  function request(method: string, path: string, headers: string[]): string {
    const lines = [`${method} /v1/game${path} HTTP/1.1`, 'host: test', `authorization: Bearer ${service.adminToken}`]
    return `${[...lines, ...headers].join('\r\n')}\r\n\r\n`
  }
  const post = (path: string, headers: string[]) => request('POST', path, headers)
})

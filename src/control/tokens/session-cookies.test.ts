// What a page of somebody else can make a browser send, and what must come of it: nothing. On one engine: the database
// plays no part in it.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { send } from '../../../test/support/send.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { type Browser, browserWith, cookieOf, signIn, trySignIn } from '../../../test/support/sessions.ts'

describe('session cookies', () => {
  let service: TestService
  let browser: Browser
  before(async () => {
    service = await startTestService({ env: { GAMEKEEPER_CORS_ORIGINS: 'https://friend.example' } })
    browser = await signIn(service, { token: service.adminToken })
  })
  after(() => service.stop())

  const countServers = async () => (await service.call('GET', '/servers')).body.data.length
  const create = (headers: Record<string, string>, body = '{"name":"Forged"}') =>
    send(service, 'POST', '/v1/game/servers', {
      token: null,
      body,
      headers: { 'content-type': 'application/json', ...browser.headers, ...headers },
    })

  test('the cookie is for this service alone, and no script can read it', async () => {
    const reply = await trySignIn(service, { token: service.adminToken })
    const [value, ...attributes] = (reply.headers.get('set-cookie') ?? '').split('; ')
    assert.match(value ?? '', /^gamekeeper=[A-Za-z0-9_-]{43}$/)
    assert.deepEqual(attributes, ['Path=/', 'Max-Age=15552000', 'HttpOnly', 'SameSite=Strict'])
    assert.equal(reply.headers.get('cache-control'), 'no-store')
  })

  test('Under HTTPS the cookie is Secure and has the __Host- prefix, and no other cookie counts.', async () => {
    await using secure = await startTestService({ env: { GAMEKEEPER_TRUSTED_PROXIES: '127.0.0.1' } })
    const proxied = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'games.example' }
    const ask = (method: string, headers: Record<string, string>, body?: object) =>
      secure.call(method, '/session', { token: null, headers: { ...proxied, ...headers }, ...(body ? { body } : {}) })
    const reply = await ask('POST', { origin: 'https://games.example' }, { token: secure.adminToken })
    const cookie = reply.headers.get('set-cookie') ?? ''
    assert.match(cookie, /^__Host-gamekeeper=[^;]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/)
    const held = browserWith(secure, cookieOf(reply), reply.body.proof).headers
    assert.equal((await ask('GET', held)).status, 200)
    assert.equal((await ask('GET', { ...held, cookie: cookieOf(reply).replace('__Host-', '') })).status, 401)
    assert.equal((await ask('DELETE', { ...held, origin: 'https://evil.example' })).status, 403)
    assert.equal((await ask('DELETE', { ...held, origin: 'https://games.example' })).status, 204)
  })

  test('A change by cookie needs an Origin that is ours: a form, a fetch from elsewhere and a CORS origin are refused.', async () => {
    const before = await countServers()
    for (const headers of [
      { origin: 'https://evil.example', 'content-type': 'text/plain' },
      { origin: 'https://evil.example', 'content-type': 'application/x-www-form-urlencoded' },
      { origin: 'https://evil.example' },
      { origin: 'https://friend.example' },
      { origin: 'null' },
      { origin: service.url.replace('http:', 'https:') },
      { origin: `${service.url}.evil.example` },
      { origin: service.url.replace(/:\d+$/, ':1') },
      { origin: '' },
      {},
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'none' },
      { origin: service.url, 'sec-fetch-site': 'cross-site' },
    ] as Record<string, string>[]) {
      const reply = await create(headers)
      assert.deepEqual([reply.status, reply.body.code], [403, 'forbidden'], JSON.stringify(headers))
    }
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      const { id } = await service.createServer()
      const path = method === 'PUT' ? `/v1/game/files/${id}/content?path=/x` : `/v1/game/servers/${id}`
      const reply = await send(service, method, path, { token: null, headers: browser.headers, body: '{}' })
      assert.deepEqual([reply.status, reply.body.code], [403, 'forbidden'], method)
    }
    assert.equal(await countServers(), before + 3)
    assert.equal((await create({ origin: service.url })).status, 201)
    assert.equal((await create({ 'sec-fetch-site': 'same-origin' })).status, 201)
  })

  test('no page of another origin reads by cookie what the browser says it asks for', async () => {
    const path = '/v1/game/session'
    for (const site of ['cross-site', 'same-site']) {
      const headers = { ...browser.headers, 'sec-fetch-site': site }
      assert.equal((await send(service, 'GET', path, { token: null, headers })).status, 403, site)
    }
    const headers = { ...browser.headers, origin: 'https://friend.example' }
    const friend = await send(service, 'GET', path, { token: null, headers })
    assert.deepEqual([friend.status, friend.headers.get('access-control-allow-credentials')], [403, null])
  })

  test('a page of another origin cannot sign a browser in', async () => {
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'https://friend.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
    ] as Record<string, string>[]) {
      const reply = await trySignIn(service, { token: service.adminToken }, headers)
      assert.deepEqual([reply.status, reply.headers.get('set-cookie')], [403, null], JSON.stringify(headers))
    }
    const program = await service.call('POST', '/session', { token: null, body: { token: service.adminToken } })
    assert.equal(program.status, 201)
  })

  test('An Authorization header beats a cookie, even one that is not good.', async () => {
    const { id, token } = await service.mint(['servers:read'])
    const { headers } = browser
    assert.equal((await service.call('GET', '/session', { token, headers })).body.id, id)
    const bad = await service.call('GET', '/session', { token: `gk_x_${'0'.repeat(64)}`, headers })
    assert.equal(bad.status, 401)
    // With a token no page is needed: no browser sends one by itself.
    const elsewhere = { ...headers, origin: 'https://friend.example' }
    const made = await service.call('POST', '/sign-in-links', { token, headers: elsewhere })
    assert.equal(made.status, 201)
  })

  test('A cookie is worth nothing without the proof that only the page has, nor is the proof without its cookie.', async () => {
    const other = await signIn(service, { token: (await service.mint(['servers:read'])).token })
    const ask = async (cookie: string, proof?: string) => {
      const headers = { cookie, origin: service.url, ...(proof === undefined ? {} : { 'x-gamekeeper-session': proof }) }
      return (await send(service, 'GET', '/v1/game/session', { token: null, headers })).status
    }
    assert.equal(await ask(browser.cookie, browser.proof), 200)
    assert.equal(await ask(browser.cookie), 401)
    for (const proof of ['', other.proof, browser.proof.slice(1), `${browser.proof}, ${browser.proof}`, 'A'.repeat(43)])
      assert.equal(await ask(browser.cookie, proof), 401, proof)
    assert.equal(await ask(other.cookie, browser.proof), 401)
    assert.equal(await ask('', browser.proof), 401)
    // Nor does it end the session, by signing in beside it.
    assert.equal((await trySignIn(service, { token: service.adminToken }, { cookie: browser.cookie })).status, 201)
    assert.equal(await ask(browser.cookie, browser.proof), 200)
  })

  test('A cookie that somebody else on the host has set beside ours locks nobody out: the proof says which is meant.', async () => {
    const other = await signIn(service, { token: (await service.mint(['servers:read'])).token })
    for (const cookie of [
      `${browser.cookie}; ${other.cookie}`,
      `${other.cookie}; ${browser.cookie}`,
      `gamekeeper=; ${browser.cookie}`,
      `${Array.from({ length: 30 }, () => other.cookie).join('; ')}; ${browser.cookie}`,
    ]) {
      const who = (await browserWith(service, cookie, browser.proof).call('GET', '/session')).body
      assert.equal(who.name, 'admin', cookie)
      assert.equal((await trySignIn(service, { token: service.adminToken }, { cookie })).status, 201)
    }
  })

  test('cookies of others are passed over, and what only looks like ours is none', async () => {
    const [name, value = ''] = browser.cookie.split('=')
    const ask = async (cookie: string) =>
      (await browserWith(service, cookie, browser.proof).call('GET', '/session')).status
    assert.equal(await ask(`theme=dark; a=b=c; "odd"; ${browser.cookie}; __Host-gamekeeper=x`), 200)
    for (const cookie of [
      `${name}="${value}"`,
      `${name} =${value}`,
      `${name}=${value}x`,
      `${name}=${value.slice(1)}`,
      `Gamekeeper=${value}`,
      `x${name}=${value}`,
      `${name}`,
      `${name}=${'A'.repeat(43)}`,
    ])
      assert.equal(await ask(cookie), 401, cookie)
  })

  test('Signing in gives a new session whatever cookie the browser had, and ends the one that it replaces.', async () => {
    const before = await signIn(service, { token: (await service.mint(['servers:read'])).token })
    const reply = await trySignIn(service, { token: service.adminToken }, before.headers)
    assert.equal(reply.status, 201)
    assert.notEqual(cookieOf(reply), before.cookie)
    assert.equal((await before.call('GET', '/session')).status, 401)
    const made = `gamekeeper=${'A'.repeat(43)}`
    const { body } = await trySignIn(service, { token: service.adminToken }, { cookie: made })
    assert.equal((await browserWith(service, made, body.proof).call('GET', '/session')).status, 401)
  })

  test('a file that was uploaded cannot act as the user, however it is opened', async () => {
    const { id } = await service.createServer()
    const script = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    for (const [name, type] of [
      ['page.html', 'text/html'],
      ['image.svg', 'image/svg+xml'],
      ['paper.pdf', 'application/pdf'],
      ['page.xhtml', 'application/xhtml+xml'],
      // As a script of our origin it would satisfy the policy of our own pages.
      ['script.js', 'text/javascript'],
      ['none', 'application/octet-stream'],
    ] as const) {
      await service.call('PUT', `/files/${id}/content?path=/${name}`, { body: script })
      const { url } = (await browser.call('GET', `/files/${id}/download?path=/${name}`)).body
      const byCookie = await browser.call('GET', `/files/${id}/content?path=/${name}`)
      for (const reply of [byCookie, await send(service, 'GET', url, { token: null })]) {
        assert.equal(reply.status, 200)
        assert.match(reply.headers.get('content-disposition') ?? '', /^attachment;/, name)
        assert.equal(reply.headers.get('x-content-type-options'), 'nosniff')
        assert.equal(reply.headers.get('content-type'), 'application/octet-stream', name)
        const policy = reply.headers.get('content-security-policy')
        assert.equal(policy, "default-src 'none'; frame-ancestors 'none'; sandbox", `${name} as ${type}`)
      }
    }
  })
})

test('Failed sign-ins are limited like failed tokens, and lock nobody out.', async () => {
  await using service = await startTestService()
  const guess = (index: number) => trySignIn(service, { link: `gkl_${String(index).padStart(43, '0')}` })
  const statuses = (await Promise.all(Array.from({ length: 70 }, (_, index) => guess(index)))).map((one) => one.status)
  assert.deepEqual(
    [statuses.filter((status) => status === 401).length, [...new Set(statuses)].sort()],
    [60, [401, 429]],
  )
  const secret = 'A'.repeat(43)
  assert.equal((await browserWith(service, `gamekeeper=${secret}`, secret).call('GET', '/session')).status, 429)
  assert.equal((await trySignIn(service, { token: service.adminToken })).status, 201)
})

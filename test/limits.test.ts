import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestService } from './support/service.ts'

test('6,000 a minute (GAMEKEEPER_RATE_LIMIT); reported by RateLimit-Policy and RateLimit on every response', async () => {
  await using service = await startTestService({ env: { GAMEKEEPER_RATE_LIMIT: '10' } })
  const { token } = await service.mint(['servers:read'])
  for (let left = 9; left >= 0; left--) {
    const reply = await service.call('GET', '/servers', { token })
    assert.equal(reply.status, 200)
    assert.equal(reply.headers.get('ratelimit-policy'), '"token";q=10;w=60')
    assert.match(reply.headers.get('ratelimit') ?? '', new RegExp(`^"token";r=${left};t=\\d+$`))
  }
  const refused = await service.call('GET', '/servers', { token })
  assert.equal(refused.status, 429)
  assert.equal(refused.body.code, 'rate_limited')
  assert.match(refused.headers.get('ratelimit') ?? '', /^"token";r=0;t=\d+$/)
  const wait = Number(refused.headers.get('retry-after'))
  assert.ok(wait >= 1 && wait <= 60)
  assert.equal((await service.call('GET', '/servers')).status, 200, 'another token is not touched by it')
})

test('no limit where none is wanted', async () => {
  await using service = await startTestService({ env: { GAMEKEEPER_RATE_LIMIT: '0' } })
  const reply = await service.call('GET', '/servers')
  assert.equal(reply.headers.get('ratelimit'), null)
})

test('60 a minute; a valid token gets in regardless', async () => {
  await using service = await startTestService({ env: { GAMEKEEPER_TRUSTED_PROXIES: '127.0.0.1' } })
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const attempt = (address: string) =>
    service.call('GET', '/servers', { token: `gk_x_${'0'.repeat(64)}`, headers: from(address) })
  for (let i = 0; i < 60; i++) assert.equal((await attempt('203.0.113.9')).status, 401)
  const refused = await attempt('203.0.113.9')
  assert.equal(refused.status, 429)
  assert.ok(Number(refused.headers.get('retry-after')) >= 1)
  assert.match(refused.headers.get('ratelimit') ?? '', /^"sign-in";r=0;/)
  assert.equal((await attempt('203.0.113.10')).status, 401, 'another address is not touched by it')
  const good = await service.call('GET', '/servers', { headers: from('203.0.113.9') })
  assert.equal(good.status, 200, 'a good token from the same address gets in')
})

test('an IPv6 network of 64 bits counts as one', async () => {
  await using service = await startTestService({ env: { GAMEKEEPER_TRUSTED_PROXIES: '127.0.0.1' } })
  const attempt = (host: number) =>
    service.call('GET', '/servers', {
      token: null,
      headers: { 'x-forwarded-for': `2001:db8:0:1::${host.toString(16)}` },
    })
  for (let i = 1; i <= 60; i++) assert.equal((await attempt(i)).status, 401)
  assert.equal((await attempt(100)).status, 429)
})

test('Beyond the limits on requests, sign-ins and streams the response is rate_limited with Retry-After in seconds', async () => {
  await using service = await startTestService()
  const server = await service.createServer()
  const url = `${service.url}/v1/game/servers/${server.id}/activity`
  const headers = { accept: 'text/event-stream', authorization: `Bearer ${service.adminToken}` }
  const abort = new AbortController()
  const open = () => fetch(url, { headers, signal: abort.signal })
  const replies = await Promise.all(Array.from({ length: 50 }, open))
  assert.ok(replies.every((reply) => reply.status === 200))
  const refused = await open()
  assert.equal(refused.status, 429)
  assert.ok(refused.headers.get('retry-after'))
  abort.abort()
})

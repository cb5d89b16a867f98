// How the links begin that are given out: docs/operating.md says it under "Behind a reverse proxy".
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { spawnService } from './support/process.ts'
import { startTestService, type TestService } from './support/service.ts'

/** The origin of an upload link that is asked for with these headers. */
async function originOf(service: TestService, serverId: string, headers: Record<string, string>): Promise<string> {
  const { port } = new URL(service.url)
  const asked = request({
    host: '127.0.0.1',
    port,
    path: `/v1/game/files/${serverId}/upload`,
    headers: { authorization: `Bearer ${service.adminToken}`, ...headers },
  }).end()
  const [answer] = await once(asked, 'response')
  const { url } = JSON.parse((await answer.setEncoding('utf8').toArray()).join('')) as { url: string }
  return url.slice(0, url.indexOf('/v1/game'))
}

test('one that is not a plain host and port is ignored', async () => {
  await using service = await startTestService({ env: { GAMEKEEPER_HOST: '0.0.0.0' } })
  const { id } = await service.createServer()
  const { port } = new URL(service.url)
  const own = `http://127.0.0.1:${port}`
  for (const host of ['games.example.org', 'games.example.org:8443', '192.0.2.7:8080', '[2001:db8::7]:8080'])
    assert.equal(await originOf(service, id, { host }), `http://${host}`)
  for (const host of ['evil.example.org/path', 'user@evil.example.org', 'a b', 'x:99999', 'x:y', '[::1', '%00', 'x"y'])
    assert.equal(await originOf(service, id, { host }), own, host)
  // Nobody said that this proxy is to be believed.
  const forwarded = { host: 'games.example.org', 'x-forwarded-host': 'evil.example.org', 'x-forwarded-proto': 'https' }
  assert.equal(await originOf(service, id, forwarded), 'http://games.example.org')
})

test('a trusted proxy says how links begin, and others do not', async () => {
  await using service = await startTestService({ env: { GAMEKEEPER_TRUSTED_PROXIES: '127.0.0.1' } })
  const { id } = await service.createServer()
  const headers = { host: 'inside', 'x-forwarded-host': 'games.example.org', 'x-forwarded-proto': 'https' }
  assert.equal(await originOf(service, id, headers), 'https://games.example.org')
  assert.equal(await originOf(service, id, { ...headers, 'x-forwarded-proto': 'javascript' }), service.url)
})

test('a service that listens on every address without GAMEKEEPER_PUBLIC_URL says so in its log', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-test-'))
  const env = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_LOG_LEVEL: 'warn' }
  const everywhere = await spawnService({ ...env, GAMEKEEPER_HOST: '0.0.0.0' })
  await everywhere.kill('SIGTERM')
  assert.match(everywhere.output(), /"level":40.*GAMEKEEPER_PUBLIC_URL is not set/)
  const here = await spawnService(env)
  await here.kill('SIGTERM')
  assert.doesNotMatch(here.output(), /GAMEKEEPER_PUBLIC_URL/)
  await rm(dataDir, { recursive: true, force: true })
})

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { openEvents } from '../../../test/support/events.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { readConfig, startService } from '../../main.ts'
import type { Config } from '../config.ts'

onBothEngines('tokens', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())

  const newToken = (body: object, token = service.adminToken) => service.call('POST', '/tokens', { body, token })

  test('a token does what its scopes allow and nothing else', async () => {
    const server = await service.createServer()
    const { token } = await service.mint(['servers:read'])
    assert.equal((await service.call('GET', `/servers/${server.id}`, { token })).status, 200)
    const refused = await service.call('PATCH', `/servers/${server.id}`, { token, body: { name: 'x' } })
    assert.equal(refused.status, 403)
    assert.equal(refused.body.code, 'forbidden')
    assert.match(refused.body.detail, /servers:write/)
    assert.equal((await service.call('GET', '/tokens', { token })).status, 403)
    const read = await service.call('GET', `/servers/${server.id}`)
    assert.equal(read.body.name, server.name)
  })

  test('A token gives access to what it was issued for and nothing else.', async () => {
    const [mine, other] = [await service.createServer(), await service.createServer()]
    const { token } = await service.mint(['*'], [mine.id])
    assert.equal((await service.call('GET', `/servers/${mine.id}`, { token })).status, 200)
    assert.equal((await service.call('GET', `/servers/${other.id}`, { token })).status, 404)
    const listed = await service.call('GET', '/servers', { token })
    assert.deepEqual(
      listed.body.data.map((server: { id: string }) => server.id),
      [mine.id],
    )
    assert.equal((await service.call('POST', '/servers', { token, body: { name: 'x' } })).status, 403)
    assert.equal((await service.call('GET', '/activity', { token })).status, 403)
    assert.equal((await service.call('GET', '/activity/verify', { token })).status, 403)
  })

  test('The value is shown once, in the response to POST /tokens: only a hash is kept.', async () => {
    const minted = await newToken({ name: 'once', scopes: ['servers:read'], servers: '*' })
    assert.equal(minted.status, 201)
    const secret = minted.body.token.split('_').at(-1) as string
    assert.match(minted.body.token, /^gk_[0-9a-z]+_[0-9a-f]{64}$/)
    const listed = await service.call('GET', '/tokens')
    assert.doesNotMatch(listed.text, new RegExp(secret))
    const row = await withDatabase(service, (db) =>
      db.selectFrom('tokens').selectAll().where('id', '=', minted.body.id).executeTakeFirstOrThrow(),
    )
    assert.doesNotMatch(JSON.stringify(row), new RegExp(secret, 'i'))
    for (const name of await readdir(service.dataDir)) {
      const bytes = await readFile(join(service.dataDir, name)).catch(() => Buffer.alloc(0))
      for (const value of [secret, service.adminToken.split('_').at(-1) as string]) {
        assert.ok(!bytes.includes(value), `${name} holds a secret`)
      }
    }
  })

  test('an expired token is unknown, and its open streams end by themselves', async () => {
    const server = await service.createServer()
    const open = async (lifeMs: number) => {
      const expiresAt = new Date(Date.now() + lifeMs).toISOString()
      const { token } = await service.mint(['*'], '*', { expiresAt })
      return {
        token,
        expiresAt,
        events: await openEvents(`${service.url}/v1/game/servers/${server.id}/activity`, token),
      }
    }
    // A busy machine may take longer to open the stream than the token lives; then it is given more.
    let lifeMs = 700
    let opened = await open(lifeMs)
    while (opened.events.status === 401 && lifeMs < 60_000) {
      lifeMs *= 3
      opened = await open(lifeMs)
    }
    const { token, expiresAt, events } = opened
    assert.equal(events.status, 200)
    assert.equal(await events.next(), undefined)
    assert.ok(Date.now() >= Date.parse(expiresAt) - 5)
    const refused = await service.call('GET', '/servers', { token })
    assert.equal(refused.status, 401)
    assert.match(refused.headers.get('www-authenticate') ?? '', /error="invalid_token"/)
  })

  test('times that are no time cannot make a token that never expires', async () => {
    for (const expiresAt of [
      '2016-12-31T23:59:60Z',
      '2030-02-30T00:00:00Z',
      '9999-12-31T23:59:59-01:00',
      '2020-01-01T00:00:00Z',
    ]) {
      const reply = await newToken({ name: 'x', scopes: ['servers:read'], servers: '*', expiresAt })
      assert.equal(reply.status, 400, expiresAt)
      assert.equal(reply.body.errors[0].path, '/expiresAt')
    }
  })

  test('Revoking it takes effect at once, including on open streams and links issued with it.', async () => {
    const server = await service.createServer()
    const { id, token } = await service.mint(['*'])
    const events = await openEvents(`${service.url}/v1/game/servers/${server.id}/activity`, token)
    const next = events.next()
    const upload = (await service.call('GET', `/files/${server.id}/upload`, { token })).body
    const send = async () => (await fetch(upload.url, { method: 'POST', body: new FormData() })).status
    assert.equal(await send(), 400, 'a form without files, by a link that is good')
    assert.equal((await service.call('DELETE', `/tokens/${id}`)).status, 204)
    assert.equal((await service.call('GET', '/servers', { token })).status, 401)
    assert.equal(await send(), 404)
    assert.equal(await next, undefined)
    assert.equal((await service.call('DELETE', `/tokens/${id}`)).status, 404)
    const ids = (await service.call('GET', '/tokens?limit=100')).body.data.map((row: { id: string }) => row.id)
    assert.ok(!ids.includes(id))
  })

  test('a revoked token stays revoked while it is being used from all sides', async () => {
    const { id, token } = await service.mint(['servers:read'])
    const uses = Array.from({ length: 20 }, () => service.call('GET', '/servers?limit=1', { token }))
    const revoked = service.call('DELETE', `/tokens/${id}`)
    const statuses = (await Promise.all(uses)).map((reply) => reply.status)
    assert.equal((await revoked).status, 204)
    assert.ok(statuses.every((status) => status === 200 || status === 401))
    assert.equal((await service.call('GET', '/servers', { token })).status, 401)
  })

  test('Nobody can make, see or revoke a token that can do more, reach more or last longer than their own.', async () => {
    const [mine, other] = [await service.createServer(), await service.createServer()]
    const soon = new Date(Date.now() + 3600_000).toISOString()
    const { token } = await service.mint(['tokens:admin', 'servers:read'], [mine.id], { expiresAt: soon })
    const wanted = { name: 'x', scopes: ['servers:read'], servers: [mine.id], expiresAt: soon }
    assert.equal((await newToken(wanted, token)).status, 201)
    const wider = [
      { scopes: ['servers:write'] },
      { scopes: ['*'] },
      { servers: '*' },
      { servers: [mine.id, other.id] },
      { servers: ['srv_none'] },
      { expiresAt: new Date(Date.now() + 7200_000).toISOString() },
      { expiresAt: null },
      { expiresAt: undefined },
    ]
    for (const change of wider) {
      const reply = await newToken({ ...wanted, ...change }, token)
      assert.equal(reply.status, 403, JSON.stringify(change))
    }
    const wide = await service.mint(['servers:read'], '*')
    assert.equal((await service.call('DELETE', `/tokens/${wide.id}`, { token })).status, 404)
    const seen = (await service.call('GET', '/tokens', { token })).body.data
    assert.ok(seen.length > 0)
    for (const row of seen) assert.deepEqual(row.servers, [mine.id])
  })

  test('a server that is not there cannot be named in a token', async () => {
    const reply = await newToken({ name: 'x', scopes: ['servers:read'], servers: ['srv_none'] })
    assert.equal(reply.status, 400)
    assert.equal(reply.body.errors[0].path, '/servers')
  })

  test('any token may read what it is and the names of its servers, of which deleted ones are left out', async () => {
    const [kept, gone] = [await service.createServer({ name: 'Kept' }), await service.createServer({ name: 'Gone' })]
    const { id, token } = await service.mint(['files:read'], [gone.id, kept.id])
    const own = () => service.call('GET', '/token', { token })
    const { body } = await own()
    const servers = [gone, kept].map((server) => ({ id: server.id, name: server.name }))
    assert.deepEqual(body, { id, name: 'test', scopes: ['files:read'], servers, expiresAt: null })
    assert.equal((await service.call('GET', `/servers/${kept.id}`, { token })).status, 403)
    await service.call('DELETE', `/servers/${gone.id}`, { body: { name: 'Gone' } })
    assert.deepEqual((await own()).body.servers, [servers[1]])
    await service.call('DELETE', `/tokens/${id}`)
    assert.equal((await own()).status, 401)
    assert.equal((await service.call('GET', '/token')).body.servers, '*')
  })

  test('lists are paged', async () => {
    const ids = new Set<string>()
    let cursor: string | null = ''
    do {
      const page: { body: { data: { id: string }[]; nextCursor: string | null } } = await service.call(
        'GET',
        `/tokens?limit=3${cursor ? `&cursor=${cursor}` : ''}`,
      )
      assert.ok(page.body.data.length <= 3)
      for (const { id } of page.body.data) assert.ok(!ids.has(id) && ids.add(id))
      cursor = page.body.nextCursor
    } while (cursor)
    assert.equal(ids.size, (await service.call('GET', '/tokens?limit=100')).body.data.length)
  })

  test('when a token was last used is known after a while, without a write per request', async () => {
    // It is written down every minute, and the minutes begin with the service.
    await service.restart()
    const { id, token } = await service.mint(['servers:read'])
    const version = () =>
      withDatabase(service, (db) => db.selectFrom('tokens').selectAll().where('id', '=', id).executeTakeFirstOrThrow())
    for (let i = 0; i < 5; i++) await service.call('GET', '/servers?limit=1', { token })
    assert.equal((await version()).last_used_at, null)
    await service.restart()
    assert.ok(Math.abs(Number((await version()).last_used_at) - Date.now()) < 60_000)
    const row = (await service.call('GET', '/tokens')).body.data.find((one: { id: string }) => one.id === id)
    assert.ok(row.lastUsedAt)
  })
})

onBothEngines('the first token', (engine) => {
  const blank = async () => {
    const service = await startTestService({ engine })
    const { dataDir, databaseUrl } = service
    await withDatabase(service, (db) => db.deleteFrom('tokens').execute())
    return {
      service,
      config: (env: Record<string, string> = {}): Config =>
        readConfig({
          GAMEKEEPER_PORT: '0',
          GAMEKEEPER_DATA_DIR: dataDir,
          GAMEKEEPER_LOG_LEVEL: 'silent',
          ...(databaseUrl ? { GAMEKEEPER_DATABASE_URL: databaseUrl } : {}),
          ...env,
        }),
    }
  }

  test('is shown at the first start and never again', async () => {
    const { service, config } = await blank()
    await service.halt()
    const first = await startService(config())
    assert.match(first.newAdminToken ?? '', /^gk_[0-9a-z]+_[0-9a-f]{64}$/)
    const reply = await fetch(`${first.url}/v1/game/tokens`, {
      headers: { authorization: `Bearer ${first.newAdminToken}` },
    })
    assert.equal(reply.status, 200)
    await first.stop()
    const second = await startService(config())
    assert.equal(second.newAdminToken, null)
    await second.stop()
    await service.stop()
  })

  test("A start is refused if GAMEKEEPER_ADMIN_TOKEN was revoked, has another token's id or lacks full access.", async () => {
    const { service, config } = await blank()
    await service.halt()
    const value = `gk_mine_${randomBytes(32).toString('hex')}`
    const start = (token: string) => startService(config({ GAMEKEEPER_ADMIN_TOKEN: token }))
    for (let i = 0; i < 2; i++) {
      const one = await start(value)
      assert.equal(one.newAdminToken, null)
      await one.stop()
    }
    await assert.rejects(start(`gk_mine_${'0'.repeat(64)}`), /id of another token/)
    const other = await start(`gk_an_other_${'1'.repeat(64)}`)
    const authorization = `Bearer gk_an_other_${'1'.repeat(64)}`
    await fetch(`${other.url}/v1/game/tokens/tok_mine`, { method: 'DELETE', headers: { authorization } })
    const body = JSON.stringify({ name: 'narrow', scopes: ['servers:read'], servers: '*' })
    const headers = { authorization, 'content-type': 'application/json' }
    const narrow = (await (await fetch(`${other.url}/v1/game/tokens`, { method: 'POST', headers, body })).json()) as {
      token: string
    }
    await other.stop()
    await assert.rejects(start(value), /revoked/)
    await assert.rejects(start(narrow.token), /cannot do everything/)
    await service.stop()
  })
})

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { openEvents } from '../../../test/support/events.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { browserWith, cookieOf, secretIn, signIn, trySignIn } from '../../../test/support/sessions.ts'

onBothEngines('sessions', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())

  const inviteAs = (token: string, more: object = {}) =>
    service.call('POST', '/invitations', {
      token,
      body: { name: 'Anna', scopes: ['servers:read'], servers: '*', ...more },
    })
  const invite = async (more: object = {}) => (await inviteAs(service.adminToken, more)).body
  const codes = (replies: { status: number }[]) => replies.map(({ status }) => status).sort()

  test('A session can do what its token can, and nothing else.', async () => {
    const server = await service.createServer()
    const { id, token } = await service.mint(['servers:read'], [server.id])
    const reply = await trySignIn(service, { token })
    assert.deepEqual([reply.status, reply.body.id, reply.body.servers], [201, id, [{ id: server.id, name: 'Castle' }]])
    const browser = browserWith(service, cookieOf(reply), reply.body.proof)
    assert.equal((await browser.call('GET', `/servers/${server.id}`)).status, 200)
    const refused = await browser.call('PATCH', `/servers/${server.id}`, { body: { name: 'Mine' } })
    assert.deepEqual([refused.status, refused.body.code], [403, 'forbidden'])
    assert.match(refused.body.detail, /servers:write/)
    const { proof: _, ...known } = reply.body
    assert.deepEqual((await browser.call('GET', '/session')).body, known)
    const byToken = await service.call('GET', '/session', { token })
    assert.deepEqual([byToken.body.id, byToken.body.session], [id, null])
  })

  test('exactly one of a token, a link and an invitation signs in', async () => {
    for (const body of [{}, { token: service.adminToken, link: 'gkl_x' }, { token: 7 }, { colour: 'red' }]) {
      const { status, body: problem } = await trySignIn(service, body)
      assert.deepEqual([status, problem.code], [400, 'invalid_request'], JSON.stringify(body))
    }
    for (const body of [{ token: 'gk_x' }, { link: 'gkl_x' }, { invitation: 'gki_x' }]) {
      const reply = await trySignIn(service, body)
      assert.deepEqual([reply.status, reply.body.code, reply.headers.get('set-cookie')], [401, 'unauthenticated', null])
    }
    const large = await trySignIn(service, { token: 'x'.repeat(5000) })
    assert.deepEqual([large.status, large.body.code], [413, 'too_large'])
  })

  test('Only hashes of session cookies, proofs, sign-in links and invitations are stored.', async () => {
    const { cookie, proof } = await signIn(service, { token: service.adminToken })
    const link = secretIn((await service.call('POST', '/sign-in-links')).body)
    const invitation = secretIn(await invite())
    const rows = await withDatabase(service, async (db) => [
      await db.selectFrom('sessions').selectAll().execute(),
      await db.selectFrom('sign_in_links').selectAll().execute(),
      await db.selectFrom('invitations').selectAll().execute(),
      await db.selectFrom('activity').selectAll().execute(),
    ])
    assert.ok(rows.every((list) => list.length > 0))
    const text = JSON.stringify(rows)
    for (const secret of [cookie.split('=')[1] ?? '', proof, link.slice(4), invitation.slice(4)]) {
      assert.equal(secret.length, 43)
      assert.ok(!text.includes(secret))
    }
  })

  test('Signing out ends the session and its streams at once, and no other session.', async () => {
    const server = await service.createServer()
    const [first, second] = [
      await signIn(service, { token: service.adminToken }),
      await signIn(service, { token: service.adminToken }),
    ]
    const url = `${service.url}/v1/game/servers/${server.id}/activity`
    const events = await openEvents(url, null, first.headers)
    assert.equal(events.status, 200)
    const out = await first.call('DELETE', '/session')
    assert.equal(out.status, 204)
    assert.match(out.headers.get('set-cookie') ?? '', /^gamekeeper=; Path=\/; Max-Age=0; /)
    assert.equal(await events.next(), undefined)
    assert.equal((await first.call('GET', '/session')).status, 401)
    assert.equal((await second.call('GET', '/session')).status, 200)
  })

  test('A session ends with its token, at once, and so do its streams.', async () => {
    const server = await service.createServer()
    const { id, token } = await service.mint(['*'])
    const browser = await signIn(service, { token })
    const events = await openEvents(`${service.url}/v1/game/servers/${server.id}/activity`, null, browser.headers)
    assert.equal((await service.call('DELETE', `/tokens/${id}`)).status, 204)
    assert.equal(await events.next(), undefined)
    assert.equal((await browser.call('GET', '/session')).status, 401)
    assert.equal((await trySignIn(service, { token })).status, 401)
  })

  test('a session outlives a restart, and one of an expired token does not answer', async () => {
    const browser = await signIn(service, { token: service.adminToken })
    const { token } = await service.mint(['*'], '*', { expiresAt: new Date(Date.now() + 60_000).toISOString() })
    const brief = await signIn(service, { token })
    await service.restart()
    assert.equal((await browserWith(service, browser.cookie, browser.proof).call('GET', '/session')).status, 200)
    const { id } = (await browserWith(service, brief.cookie, brief.proof).call('GET', '/session')).body
    await withDatabase(service, (db) =>
      db
        .updateTable('tokens')
        .set({ expires_at: Date.now() - 1 })
        .where('id', '=', id)
        .execute(),
    )
    await service.restart()
    assert.equal((await browserWith(service, brief.cookie, brief.proof).call('GET', '/session')).status, 401)
  })

  test('Activity of the panel names the panel, and each signing in and out is recorded.', async () => {
    const { id, token } = await service.mint(['*'])
    const browser = await signIn(service, { token })
    const { body: server } = await browser.call('POST', '/servers', { body: { name: 'From the panel' } })
    await browser.call('DELETE', '/session')
    const { data } = (await service.call('GET', `/activity?actor=${id}`)).body
    const told = data.map(({ event, source }: { event: string; source: string }) => [event, source])
    assert.deepEqual(told.slice(0, 2), [
      ['session.ended', 'panel'],
      ['server.created', 'panel'],
    ])
    assert.equal(told[2][0], 'session.started')
    assert.equal(data[1].serverId, server.id)
  })

  test('A sign-in link works once, for one of several who use it at once.', async () => {
    const { id, token } = await service.mint(['servers:read'])
    const made = (await service.call('POST', '/sign-in-links', { token })).body
    assert.equal(new URL(made.url).pathname, '/sign-in')
    const link = secretIn(made)
    const replies = await Promise.all([1, 2, 3].map(() => trySignIn(service, { link })))
    assert.deepEqual(codes(replies), [201, 401, 401])
    assert.equal(replies.find(({ status }) => status === 201)?.body.id, id)
    assert.equal((await trySignIn(service, { link })).status, 401)
  })

  test('A sign-in link stops working after 15 minutes, and when its token is revoked.', async () => {
    const { id, token } = await service.mint(['servers:read'])
    const revoked = secretIn((await service.call('POST', '/sign-in-links', { token })).body)
    await service.call('DELETE', `/tokens/${id}`)
    assert.equal((await trySignIn(service, { link: revoked })).status, 401)
    const made = (await service.call('POST', '/sign-in-links')).body
    const left = Date.parse(made.expiresAt) - Date.now()
    assert.ok(left > 14 * 60_000 && left <= 15 * 60_000)
    await withDatabase(service, (db) => db.updateTable('sign_in_links').set({ expires_at: Date.now() }).execute())
    assert.equal((await trySignIn(service, { link: secretIn(made) })).status, 401)
  })

  test('An invitation becomes a token of its own, for one of several who use it at once.', async () => {
    const server = await service.createServer()
    const made = await invite({ servers: [server.id], scopes: ['servers:read', 'console:read'] })
    assert.equal(new URL(made.url).pathname, '/join')
    const listed = (await service.call('GET', '/invitations')).body.data
    const { url: _, ...kept } = made
    assert.deepEqual(listed[0], kept)
    assert.ok(!JSON.stringify(listed).includes(secretIn(made)))
    const replies = await Promise.all([1, 2, 3].map(() => trySignIn(service, { invitation: secretIn(made) })))
    assert.deepEqual(codes(replies), [201, 401, 401])
    const won = replies.find(({ status }) => status === 201)
    const { data } = (await service.call('GET', '/tokens')).body
    const anna = data.filter((token: { name: string }) => token.name === 'Anna')
    assert.deepEqual(
      anna.map((token: { id: string; scopes: string[]; servers: string[] }) => [token.id, token.scopes, token.servers]),
      [[won?.body.id, ['servers:read', 'console:read'], [server.id]]],
    )
    assert.deepEqual((await service.call('GET', '/invitations')).body.data.map(idOf).includes(made.id), false)
    const browser = browserWith(service, won ? cookieOf(won) : '', won?.body.proof)
    assert.equal((await browser.call('GET', `/servers/${server.id}`)).status, 200)
    const now = (await service.call('GET', '/tokens')).body.data.find(({ id }: { id: string }) => id === won?.body.id)
    assert.ok(Date.now() - Date.parse(now.lastUsedAt) < 60_000, 'last seen')
    await service.call('DELETE', `/tokens/${won?.body.id}`)
    assert.equal((await browser.call('GET', `/servers/${server.id}`)).status, 401)
  })

  test('Nobody can invite to more than they have.', async () => {
    const [mine, other] = [await service.createServer(), await service.createServer()]
    const { token } = await service.mint(['tokens:admin', 'servers:read'], [mine.id])
    for (const more of [{ servers: '*' }, { servers: [other.id] }, { scopes: ['*'] }, { scopes: ['files:read'] }]) {
      const { status, body } = await inviteAs(token, { servers: [mine.id], ...more })
      assert.deepEqual([status, body.code], [403, 'forbidden'], JSON.stringify(more))
    }
    assert.equal((await inviteAs(token, { servers: [mine.id] })).status, 201)
    const wide = await invite()
    assert.deepEqual(
      (await service.call('GET', '/invitations', { token })).body.data.map(idOf).includes(wide.id),
      false,
    )
    assert.equal((await service.call('DELETE', `/invitations/${wide.id}`, { token })).status, 404)
    const { token: without } = await service.mint(['servers:read'])
    assert.equal((await inviteAs(without)).status, 403)
    assert.equal((await inviteAs(service.adminToken, { servers: ['srv_none'] })).status, 400)
  })

  test('An invitation stops working after 24 hours, when it is taken back, and when its inviter is revoked.', async () => {
    const taken = await invite()
    assert.equal((await service.call('DELETE', `/invitations/${taken.id}`)).status, 204)
    assert.equal((await service.call('DELETE', `/invitations/${taken.id}`)).status, 404)
    assert.equal((await trySignIn(service, { invitation: secretIn(taken) })).status, 401)
    const inviter = await service.mint(['*'])
    const orphaned = (await inviteAs(inviter.token)).body
    await service.call('DELETE', `/tokens/${inviter.id}`)
    assert.equal((await trySignIn(service, { invitation: secretIn(orphaned) })).status, 401)
    const old = await invite()
    const left = Date.parse(old.expiresAt) - Date.now()
    assert.ok(left > 23 * 3600_000 && left <= 24 * 3600_000)
    await withDatabase(service, (db) => db.updateTable('invitations').set({ expires_at: Date.now() }).execute())
    assert.equal((await trySignIn(service, { invitation: secretIn(old) })).status, 401)
    assert.deepEqual((await service.call('GET', '/invitations')).body.data, [])
  })

  test('an invited token expires no later than the one that invited', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const { token } = await service.mint(['*'], '*', { expiresAt })
    const { body } = await trySignIn(service, { invitation: secretIn((await inviteAs(token)).body) })
    assert.equal(body.expiresAt, expiresAt)
  })

  test('taking an invitation back and using it at once: one of them wins', async () => {
    const made = await invite()
    const [used, back] = await Promise.all([
      trySignIn(service, { invitation: secretIn(made) }),
      service.call('DELETE', `/invitations/${made.id}`),
    ])
    assert.ok(
      (used.status === 201 && back.status === 404) || (used.status === 401 && back.status === 204),
      `${used.status} ${back.status}`,
    )
  })

  test('an idempotency key of one session is not answered to another', async () => {
    const { token } = await service.mint(['*'])
    const [first, second] = [await signIn(service, { token }), await signIn(service, { token })]
    const request = { body: { name: 'Once' }, headers: { 'idempotency-key': 'same' } }
    const made = await first.call('POST', '/servers', request)
    const again = await first.call('POST', '/servers', request)
    assert.deepEqual([again.body.id, again.headers.get('idempotency-replayed')], [made.body.id, 'true'])
    const other = await second.call('POST', '/servers', request)
    assert.deepEqual([other.status, other.body.code], [409, 'idempotency_conflict'])
  })
})

const idOf = ({ id }: { id: string }) => id

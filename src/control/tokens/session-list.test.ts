// Where somebody is signed in, and ending it from elsewhere.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { onBothEngines } from '../../../test/support/engines.ts'
import { openEvents } from '../../../test/support/events.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { browserWith, cookieOf, signIn, trySignIn } from '../../../test/support/sessions.ts'
import type { Session } from '../../contract/sessions.ts'

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0'

onBothEngines('lists of sessions', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())

  const idOf = async (browser: { call: TestService['call'] }): Promise<string> =>
    (await browser.call('GET', '/session')).body.session.id
  const someone = async (scopes = ['servers:read'], servers: string[] | '*' = '*') => {
    const { id, token } = await service.mint(scopes, servers)
    return { tokenId: id, token, phone: await signIn(service, { token }), laptop: await signIn(service, { token }) }
  }

  test('whoever is signed in sees where: the browser, when it was last used, and which one asks', async () => {
    const { token } = await service.mint(['servers:read'])
    const reply = await trySignIn(service, { token }, { 'user-agent': FIREFOX })
    const phone = browserWith(service, cookieOf(reply), reply.body.proof)
    const laptop = await signIn(service, { token })
    await phone.call('GET', '/servers')
    const { data } = (await laptop.call('GET', '/sessions')).body as { data: Session[] }
    assert.deepEqual(
      data.map(({ id, isCurrent }) => [id, isCurrent]),
      [
        [await idOf(laptop), true],
        [await idOf(phone), false],
      ],
    )
    assert.deepEqual([data[1]?.userAgent, data[1]?.ip], [FIREFOX, '127.0.0.1'])
    assert.ok(Date.now() - Date.parse(data[1]?.lastUsedAt ?? '') < 60_000)
    const first = (await laptop.call('GET', '/sessions?limit=1')).body
    const second = (await laptop.call('GET', `/sessions?limit=1&cursor=${first.nextCursor}`)).body
    assert.deepEqual([first.data[0].id, second.data[0].id, second.nextCursor], [data[0]?.id, data[1]?.id, null])
    const byToken = (await service.call('GET', '/sessions', { token })).body.data as Session[]
    assert.deepEqual([byToken.length, byToken.some(({ isCurrent }) => isCurrent)], [2, false])
  })

  test('Ending a session from elsewhere ends its streams at once, and no other session.', async () => {
    const server = await service.createServer()
    const { tokenId, phone, laptop } = await someone(['*'])
    const url = `${service.url}/v1/game/servers/${server.id}/activity`
    const [ofPhone, ofLaptop] = [
      await openEvents(url, null, phone.headers),
      await openEvents(url, null, laptop.headers),
    ]
    const phoneId = await idOf(phone)
    assert.equal((await laptop.call('DELETE', `/sessions/${phoneId}`)).status, 204)
    assert.equal(await ofPhone.next(), undefined)
    assert.equal((await phone.call('GET', '/session')).status, 401)
    assert.equal((await laptop.call('DELETE', `/sessions/${phoneId}`)).status, 404)
    assert.equal((await laptop.call('GET', '/session')).status, 200)
    await service.call('PATCH', `/servers/${server.id}`, { body: { name: 'Still followed' } })
    assert.ok(await ofLaptop.next())
    ofLaptop.close()
    const { data } = (await service.call('GET', `/activity?actor=${tokenId}&event=session.ended`)).body
    assert.deepEqual(data[0].properties, { sessionId: phoneId })
  })

  test('all others end at once, and that of the request stays; a token ends all of its own', async () => {
    const { token, phone, laptop } = await someone()
    const third = await signIn(service, { token })
    const stranger = await someone()
    assert.deepEqual((await laptop.call('DELETE', '/sessions')).body, { ended: 2 })
    for (const gone of [phone, third]) assert.equal((await gone.call('GET', '/session')).status, 401)
    for (const kept of [laptop, stranger.phone]) assert.equal((await kept.call('GET', '/session')).status, 200)
    assert.deepEqual((await service.call('DELETE', '/sessions', { token })).body, { ended: 1 })
    assert.equal((await laptop.call('GET', '/session')).status, 401)
    assert.equal((await service.call('GET', '/session', { token })).status, 200)
  })

  test('an owner sees where a friend is signed in, and signs them out, which is recorded with whose it was', async () => {
    const { tokenId, phone, laptop } = await someone()
    const at = `/tokens/${tokenId}/sessions`
    const listed = (await service.call('GET', at)).body.data as Session[]
    assert.deepEqual(listed.map(({ id }) => id).sort(), [await idOf(phone), await idOf(laptop)].sort())
    const phoneId = await idOf(phone)
    assert.equal((await service.call('DELETE', `${at}/${phoneId}`)).status, 204)
    assert.equal((await phone.call('GET', '/session')).status, 401)
    assert.deepEqual((await service.call('DELETE', at)).body, { ended: 1 })
    assert.equal((await laptop.call('GET', '/session')).status, 401)
    const { data } = (await service.call('GET', '/activity?event=session.ended')).body
    assert.deepEqual(data[1].properties, { sessionId: phoneId, tokenId })
  })

  test('Nobody sees or ends a session of a token that can do or reach more than their own.', async () => {
    const server = await service.createServer()
    const { token: friend } = await service.mint(['tokens:admin', 'servers:read'], [server.id])
    const { token: plain } = await service.mint(['servers:read'])
    const wide = await someone(['*'])
    const wideId = await idOf(wide.phone)
    const at = `/tokens/${wide.tokenId}/sessions`
    for (const [method, path] of [
      ['GET', at],
      ['DELETE', at],
      ['DELETE', `${at}/${wideId}`],
    ] as const) {
      assert.equal((await service.call(method, path, { token: friend })).status, 404, path)
      assert.equal((await service.call(method, path, { token: plain })).status, 403, path)
    }
    assert.equal((await service.call('DELETE', `/sessions/${wideId}`, { token: friend })).status, 404)
    // Under another token that it may see it is not there either.
    const own = await someone(['servers:read'], [server.id])
    const elsewhere = `/tokens/${own.tokenId}/sessions/${wideId}`
    assert.equal((await service.call('DELETE', elsewhere, { token: friend })).status, 404)
    assert.equal((await wide.phone.call('GET', '/session')).status, 200)
  })

  test('several who end the same session at once: one of them is told that it did it', async () => {
    const { phone, laptop } = await someone()
    const phoneId = await idOf(phone)
    const ends = await Promise.all([1, 2, 3].map(() => laptop.call('DELETE', `/sessions/${phoneId}`)))
    assert.deepEqual(ends.map(({ status }) => status).sort(), [204, 404, 404])
    const [mine, theirs] = await Promise.all([laptop.call('DELETE', '/sessions'), laptop.call('DELETE', '/session')])
    assert.deepEqual([mine.body?.ended ?? 0, theirs.status], [0, 204])
  })
})

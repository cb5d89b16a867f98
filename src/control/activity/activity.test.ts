import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { openEvents } from '../../../test/support/events.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import type { ActivityEntry } from '../../contract/activity.ts'

onBothEngines('activity', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())

  const read = async (path: string, options = {}): Promise<ActivityEntry[]> => {
    const reply = await service.call('GET', path, options)
    assert.equal(reply.status, 200, reply.text)
    return reply.body.data
  }
  const rename = (id: string, name: string, options = {}) =>
    service.call('PATCH', `/servers/${id}`, { body: { name }, ...options })
  /** A server with entries called 0, 1, 2… after that of its creation. */
  const withEntries = async (count: number) => {
    const { id } = await service.createServer()
    for (let i = 0; i < count; i++) await rename(id, `name ${i}`)
    return id
  }
  const toName = (entry: ActivityEntry) =>
    (entry.properties as { changes?: { name: { to: string } } }).changes?.name.to ?? entry.event

  test('An entry records who (actor), by what means (source), from where (ip, userAgent), in which request (requestId), and what (event, properties).', async () => {
    const minted = await service.mint(['*'])
    const sent = { token: minted.token, headers: { 'user-agent': 'tester/1', 'x-gamekeeper-client': 'cli' } }
    const created = await service.call('POST', '/servers', { ...sent, body: { name: 'Seen', game: 'rust', port: 1 } })
    const changed = await rename(created.body.id, 'Seen again', sent)
    const deleted = await service.call('DELETE', `/servers/${created.body.id}`, {
      ...sent,
      body: { name: 'Seen again' },
    })
    const revoked = await service.call('DELETE', `/tokens/${minted.id}`)
    const entries = await read('/activity?limit=100')
    const expected = [
      ['server.created', created, { name: 'Seen', game: 'rust', port: 1 }],
      ['server.changed', changed, { changes: { name: { from: 'Seen', to: 'Seen again' } } }],
      ['server.deletion_started', deleted, { name: 'Seen again', purge: false }],
    ] as const
    for (const [event, reply, properties] of expected) {
      const entry = entries.find(
        ({ requestId, event: name }) => name === event && requestId === reply.headers.get('x-request-id'),
      )
      assert.ok(entry, event)
      assert.deepEqual(entry.actor, { type: 'token', id: minted.id, name: 'test' })
      assert.equal(entry.source, 'cli')
      assert.equal(entry.ip, '127.0.0.1')
      assert.equal(entry.userAgent, 'tester/1')
      assert.equal(entry.serverId, created.body.id)
      assert.deepEqual(entry.properties, properties)
      assert.ok(Math.abs(Date.parse(entry.timestamp) - Date.now()) < 60_000)
    }
    const revocation = entries.find((entry) => entry.requestId === revoked.headers.get('x-request-id'))
    assert.equal(revocation?.event, 'token.revoked')
    assert.equal(revocation?.serverId, null)
    assert.equal(revocation?.actor.id, 'tok_admin')
    const minting = entries.find(
      ({ event, properties }) => event === 'token.created' && properties.tokenId === minted.id,
    )
    assert.deepEqual(minting?.properties.scopes, ['*'])
  })

  test('a change that changes nothing, and one that is refused, leave no entry', async () => {
    const server = await service.createServer()
    await rename(server.id, server.name)
    await rename(server.id, '')
    assert.equal((await read(`/servers/${server.id}/activity`)).length, 1)
  })

  test('a client cannot pass for the system, and X-Forwarded-For is not believed by default', async () => {
    const { id } = await service.createServer()
    await rename(id, 'x', { headers: { 'x-gamekeeper-client': 'system', 'x-forwarded-for': '203.0.113.9' } })
    const [entry] = await read(`/servers/${id}/activity?limit=1`)
    assert.equal(entry?.source, 'api')
    assert.equal(entry?.ip, '127.0.0.1')
  })

  test('pages hold every entry once, newest first', async () => {
    const id = await withEntries(23)
    const seen: string[] = []
    let cursor: string | null = ''
    do {
      const reply: { body: { data: ActivityEntry[]; nextCursor: string | null } } = await service.call(
        'GET',
        `/servers/${id}/activity?limit=5${cursor ? `&cursor=${cursor}` : ''}`,
      )
      assert.ok(reply.body.data.length === 5 || reply.body.nextCursor === null)
      seen.push(...reply.body.data.map(toName))
      cursor = reply.body.nextCursor
    } while (cursor)
    assert.deepEqual(seen, [...Array.from({ length: 23 }, (_, i) => `name ${22 - i}`), 'server.created'])
  })

  test('filters by event, family, actor and time', async () => {
    const id = await withEntries(2)
    const other = await service.mint(['servers:read'])
    await rename(id, 'x', { token: other.token })
    const count = async (query: string) => (await read(`/servers/${id}/activity?${query}`)).length
    assert.equal(await count('event=server.changed'), 2)
    assert.equal(await count('event=server.*'), 3)
    assert.equal(await count('event=access.*'), 1)
    assert.equal(await count('event=serve.*'), 0)
    assert.equal(await count('event=backup.*'), 0)
    assert.equal(await count(`actor=${other.id}`), 1)
    assert.equal(await count(`actor=tok_admin&event=server.changed`), 2)
    assert.equal(await count('actor=system'), 0)
    const all = await read(`/servers/${id}/activity`)
    const [newest, middle, oldest] = [all[0], all[1], all[3]].map((entry) => entry?.timestamp ?? '')
    assert.equal(await count(`since=${oldest}`), 4)
    assert.equal(await count(`until=${newest}`), 4)
    assert.equal(
      await count(`since=${middle}&until=${middle}`),
      all.filter((entry) => entry.timestamp === middle).length,
    )
    assert.equal(await count(`since=2999-01-01T00:00:00Z`), 0)
    assert.equal(await count(`until=1999-01-01T00:00:00%2B02:00`), 0)
    assert.equal(await count(`since=${newest}&until=${oldest}`), newest === oldest ? 4 : 0)
  })

  test('filters hold across all servers too', async () => {
    const [one, two] = [await withEntries(1), await withEntries(1)]
    const actor = await service.mint(['*'])
    await rename(one, 'by another', { token: actor.token })
    const found = await read(`/activity?actor=${actor.id}`)
    assert.deepEqual(found.map(toName), ['by another'])
    const ids = new Set((await read('/activity?event=server.*&limit=100')).map((entry) => entry.serverId))
    assert.ok(ids.has(one) && ids.has(two) && !ids.has(null))
    assert.ok((await read('/activity?event=token.created&limit=100')).every((entry) => entry.event === 'token.created'))
    assert.equal((await read('/activity?since=2999-01-01T00:00:00Z')).length, 0)
  })

  test('a search takes every character for itself', async () => {
    const { id } = await service.createServer()
    for (const name of ['100% sure', 'snake_case', 'back\\slash', 'quote"d', 'École', "o'clock", 'plain'])
      await rename(id, name)
    const find = async (q: string) => (await read(`/servers/${id}/activity?q=${encodeURIComponent(q)}`)).map(toName)
    assert.deepEqual(await find('100%'), ['snake_case', '100% sure'])
    assert.deepEqual(await find('0% s'), ['snake_case', '100% sure'])
    assert.deepEqual(await find('e_c'), ['back\\slash', 'snake_case'])
    assert.deepEqual(await find('back\\s'), ['quote"d', 'back\\slash'])
    assert.deepEqual(await find('quote"d'), ['École', 'quote"d'])
    assert.deepEqual(await find('École'), ["o'clock", 'École'])
    assert.deepEqual(await find("o'CLOCK"), ['plain', "o'clock"])
    assert.deepEqual(await find('%'), ['snake_case', '100% sure'])
    assert.deepEqual(await find('\\%'), [])
    assert.equal((await find('SERVER.changed')).length, 7)
    assert.equal((await find('127.0.0.1')).length, 8)
  })

  test('everything can be had as lines of JSON', async () => {
    const id = await withEntries(3)
    const reply = await service.call('GET', `/servers/${id}/activity?limit=1`, {
      headers: { accept: 'application/x-ndjson' },
    })
    assert.match(reply.headers.get('content-type') ?? '', /^application\/x-ndjson/)
    const entries = reply.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.deepEqual(entries, await read(`/servers/${id}/activity`))
  })

  test('what a spreadsheet would treat as a formula is escaped with an apostrophe', async () => {
    const evil = await service.call('POST', '/tokens', {
      body: { name: '=cmd|"/c calc"!A1', scopes: ['*'], servers: '*' },
    })
    const { id } = await service.createServer()
    const agents = ['@SUM(1)', '+1', '-1', '=1', 'plain, with comma', ' =1']
    for (const agent of agents) await rename(id, agent, { token: evil.body.token, headers: { 'user-agent': agent } })
    const reply = await service.call('GET', `/servers/${id}/activity`, { headers: { accept: 'text/csv' } })
    const rows = parseCsv(reply.text)
    assert.equal(rows.length, agents.length + 2)
    assert.ok(rows.every((row) => row.length === rows[0]?.length))
    for (const cell of rows.flat()) assert.doesNotMatch(cell, /^\s*[=+\-@]/)
    assert.ok(rows.some((row) => row.includes(`'=cmd|"/c calc"!A1`)))
    assert.ok(rows.some((row) => row.includes('plain, with comma')))
  })

  test('what cannot be produced is refused', async () => {
    const { id } = await service.createServer()
    for (const accept of ['image/png', 'text/html', 'application/json;q=0']) {
      const reply = await service.call('GET', `/servers/${id}/activity`, { headers: { accept } })
      assert.equal(reply.status, 406)
    }
    const all = await service.call('GET', '/activity', { headers: { accept: 'text/event-stream' } })
    assert.equal(all.status, 406)
  })

  test('A follower that reconnects with Last-Event-ID misses nothing and sees nothing twice.', async () => {
    const { id } = await service.createServer()
    const url = `${service.url}/v1/game/servers/${id}/activity`
    const total = 120
    const first = await openEvents(url, service.adminToken)
    assert.equal(first.headers.get('content-type'), 'text/event-stream')
    const writing = (async () => {
      for (let i = 0; i < total; i += 4) await Promise.all([0, 1, 2, 3].map((k) => rename(id, `name ${i + k}`)))
    })()
    const seen: ActivityEntry[] = []
    let stream = first
    let left = 3
    while (seen.length < total) {
      const event = await stream.next()
      assert.ok(event, 'the stream ended early')
      assert.equal(event.event, 'activity')
      assert.equal(event.id, event.data.id)
      seen.push(event.data)
      if (--left > 0 || seen.length === total) continue
      stream.close()
      left = 1 + (seen.length % 7)
      stream = await openEvents(url, service.adminToken, { 'last-event-id': event.id })
    }
    stream.close()
    await writing
    const listed = (await read(`/servers/${id}/activity?limit=100`)).slice(0, 100).reverse()
    assert.deepEqual(
      seen.slice(-100).map((entry) => entry.id),
      listed.map((entry) => entry.id),
    )
    assert.equal(new Set(seen.map((entry) => entry.id)).size, total)
  })

  test('a follower may resume after a restart and may filter', async () => {
    const id = await withEntries(3)
    const entries = await read(`/servers/${id}/activity`)
    await service.restart()
    const url = `${service.url}/v1/game/servers/${id}/activity`
    const from = { 'last-event-id': entries[3]?.id ?? '' }
    const all = await openEvents(url, service.adminToken, from)
    for (const name of ['name 0', 'name 1', 'name 2']) assert.equal(toName((await all.next())?.data), name)
    all.close()
    const some = await openEvents(`${url}?q=${encodeURIComponent('name 2')}`, service.adminToken, from)
    assert.equal(toName((await some.next())?.data), 'name 2')
    some.close()
    const wrong = await openEvents(url, service.adminToken, { 'last-event-id': 'x' })
    assert.equal(wrong.status, 400)
  })

  test('When a server is purged, its stream reports that and ends.', async () => {
    const server = await service.createServer()
    const events = await openEvents(`${service.url}/v1/game/servers/${server.id}/activity`, service.adminToken)
    await service.call('DELETE', `/servers/${server.id}`, { body: { name: server.name, purge: true } })
    const seen: string[] = []
    for (let event = await events.next(); event; event = await events.next()) seen.push(event.data.event)
    assert.deepEqual(seen, ['server.deletion_started', 'server.deleted', 'server.purged'])
  })

  test('HEAD does not open a stream', async () => {
    const { id } = await service.createServer()
    const headers = { accept: 'text/event-stream', authorization: `Bearer ${service.adminToken}` }
    const reply = await fetch(`${service.url}/v1/game/servers/${id}/activity`, { method: 'HEAD', headers })
    assert.ok(reply.status < 500)
    assert.equal(await reply.text(), '')
  })
})

test('behind a trusted proxy the address is the one it names', async () => {
  await using service = await startTestService({ env: { GAMEKEEPER_TRUSTED_PROXIES: '127.0.0.0/8' } })
  const { id } = await service.createServer()
  const forwarded = { 'x-forwarded-for': '198.51.100.1, 203.0.113.9' }
  await service.call('PATCH', `/servers/${id}`, { body: { name: 'x' }, headers: forwarded })
  const { data } = (await service.call('GET', `/servers/${id}/activity?limit=1`)).body
  // What a client wrote before the proxy added its own is not believed.
  assert.equal(data[0].ip, '203.0.113.9')
})

test('Revoking takes effect at once, including on open streams and exports.', async () => {
  await using service = await startTestService()
  const { id } = await service.createServer()
  await withDatabase(service, async (db) => {
    const [row] = await db.selectFrom('activity').selectAll().where('chain', '=', id).execute()
    assert.ok(row)
    const properties = JSON.stringify({ filler: 'x'.repeat(1000) })
    for (let from = 2; from < 20_000; from += 500) {
      const rows = Array.from({ length: 500 }, (_, i) => ({
        ...row,
        seq: from + i,
        id: `act_z${from + i}`,
        properties,
      }))
      await db.insertInto('activity').values(rows).execute()
    }
    await db.updateTable('activity_heads').set({ seq: 20_001 }).where('chain', '=', id).execute()
  })
  const minted = await service.mint(['*'])
  const headers = { accept: 'application/x-ndjson', authorization: `Bearer ${minted.token}` }
  const response = await fetch(`${service.url}/v1/game/servers/${id}/activity`, { headers })
  assert.equal(response.status, 200)
  await service.call('DELETE', `/tokens/${minted.id}`)
  await assert.rejects(response.text(), 'a cut export must not look whole')
})

/** RFC 4180, enough of it for what we write. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = []
  for (const line of text.match(/(?:"(?:[^"]|"")*"|[^"\r\n])+\r\n/g) ?? []) {
    const cells = line.slice(0, -2).match(/(?:^|,)(?:"(?:[^"]|"")*"|[^,]*)/g) ?? []
    rows.push(
      cells.map((cell) =>
        cell
          .replace(/^,/, '')
          .replace(/^"(.*)"$/s, '$1')
          .replaceAll('""', '"'),
      ),
    )
  }
  return rows
}

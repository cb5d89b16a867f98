// Subdomains through the front door, with the embedded provider and questions over DNS.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, beforeEach, test } from 'node:test'
import { promisify } from 'node:util'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { ask, LOCAL_DNS, subdomainCalls } from '../../../test/support/subdomains.ts'
import { until } from '../../../test/support/until.ts'

const run = promisify(execFile)
const ZONES = [
  { zone: 'play.test', provider: 'embedded', target: '203.0.113.7', ttl: 60, reserved: ['arena'] },
  { zone: 'both.test', provider: 'embedded', target: ['203.0.113.7', '2001:db8::7'], ttl: 120, maxPerServer: 1 },
  { zone: 'host.test', provider: 'embedded', target: 'node7.example.org' },
]

onBothEngines('subdomains', (engine) => {
  let service: TestService
  let serverId: string
  before(async () => {
    service = await startTestService({ engine, env: { GAMEKEEPER_ZONES: JSON.stringify(ZONES), ...LOCAL_DNS } })
    calls = subdomainCalls(service, () => serverId)
  })
  after(() => service.stop())
  beforeEach(async () => {
    serverId = (await service.createServer({ game: 'minecraft-java', port: 25566 })).id
  })
  let calls: ReturnType<typeof subdomainCalls>
  const dns = (type: 'A' | 'AAAA' | 'SRV' | 'CNAME' | 'TXT', name: string) => ask(service.dns, type, name)

  test('create, answered over DNS, deleted, gone from DNS; each step told', async () => {
    const created = await calls.create('Castle')
    assert.equal(created.status, 201)
    assert.equal(created.headers.get('location'), `/v1/game${calls.at(`/${created.body.id}`)}`)
    assert.equal(created.body.status, 'pending')
    assert.equal(created.body.connect, 'castle.play.test')
    const active = await calls.settled(created.body.id)
    assert.equal(active.status, 'active')
    assert.equal(active.reason, null)
    const { port } = service.dns ?? { port: 0 }
    const dig = async (type: string, name: string) =>
      (await run('dig', ['@127.0.0.1', '-p', String(port), type, name, '+noall', '+answer', '+comments'])).stdout
    assert.match(await dig('SRV', '_minecraft._tcp.castle.play.test'), /0 0 25566 castle.play.test./)
    assert.match(await dig('A', 'castle.play.test'), /203\.0\.113\.7/)
    assert.equal((await calls.remove(created.body.id)).status, 204)
    assert.match(await dig('SRV', '_minecraft._tcp.castle.play.test'), /NXDOMAIN/)
    assert.match(await dig('TXT', '_gamekeeper.castle.play.test'), /NXDOMAIN/)
    assert.equal((await calls.read(created.body.id)).status, 404)
    assert.equal((await calls.remove(created.body.id)).status, 404)
    assert.deepEqual(
      (await calls.events()).map(({ event }) => event),
      ['subdomain.deleted', 'subdomain.deletion_started', 'subdomain.activated', 'subdomain.created'],
    )
  })

  test('A template of your own says its SRV name and port itself', async () => {
    const template = {
      ...{ format: 1, id: 'own-game', name: 'Own', runtimes: ['process'], start: { args: ['./start'] } },
      ...{ stop: [{ signal: 'SIGINT', timeoutSeconds: 5 }], srv: '_own._udp', defaultPort: 4711 },
    }
    assert.equal((await service.call('POST', '/templates', { body: template })).status, 201)
    serverId = (await service.createServer({ game: 'own-game' })).id
    const { body } = await calls.create('own')
    assert.equal(body.connect, 'own.play.test')
    await calls.settled(body.id)
    assert.equal(await dns('SRV', '_own._udp.own.play.test'), '0 0 4711 own.play.test')
    assert.deepEqual(
      (await calls.read(body.id)).body.records.map(({ type }: { type: string }) => type),
      ['A', 'SRV'],
    )
  })

  test('whoever deletes is named, though another had it made', async () => {
    const { body } = await calls.create('whose')
    await calls.settled(body.id)
    const { id, token } = await service.mint(['subdomains:write'])
    await calls.removeWholly(body.id, token)
    const [deleted, started] = await calls.events()
    assert.equal(deleted?.actor.id, id)
    assert.equal(started?.actor.id, id)
  })

  test('a game whose clients ignore SRV gets addresses, and the port to type', async () => {
    serverId = (await service.createServer({ game: 'valheim', port: 2500 })).id
    const { body } = await calls.create('vikings', 'both.test')
    assert.equal(body.connect, 'vikings.both.test:2500')
    await calls.settled(body.id)
    assert.equal(await dns('A', 'vikings.both.test'), '203.0.113.7')
    assert.equal(await dns('AAAA', 'vikings.both.test'), '2001:db8::7')
    assert.deepEqual(
      body.records.map((set: { type: string; ttl: number }) => [set.type, set.ttl]),
      [
        ['A', 120],
        ['AAAA', 120],
      ],
    )
  })

  test('no game and no port: the bare name; a game that ignores SRV: its port, also the usual one', async () => {
    serverId = (await service.createServer({})).id
    assert.equal((await calls.create('plain')).body.connect, 'plain.play.test')
    serverId = (await service.createServer({ game: 'terraria', port: 7777 })).id
    assert.equal((await calls.create('usual')).body.connect, 'usual.play.test:7777')
    serverId = (await service.createServer({ game: 'palworld' })).id
    assert.equal((await calls.create('unsaid')).body.connect, 'unsaid.play.test:8211')
  })

  test('a host name for a target is an alias, and the SRV points to the host itself', async () => {
    const { body } = await calls.create('aliased', 'host.test')
    await calls.settled(body.id)
    assert.equal(await dns('CNAME', 'aliased.host.test'), 'node7.example.org')
    assert.equal(await dns('SRV', '_minecraft._tcp.aliased.host.test'), '0 0 25566 node7.example.org')
  })

  test('a changed port and a changed game change the records', async () => {
    const { body } = await calls.create('moving')
    const { propagatedAt } = await calls.settled(body.id)
    const changed = await service.call('PATCH', `/servers/${serverId}`, { body: { port: 30000 } })
    assert.equal(changed.status, 200)
    const again = await calls.reaches(body.id, (now) => now.propagatedAt && now.propagatedAt !== propagatedAt)
    assert.equal(again.status, 'active')
    assert.equal(await dns('SRV', '_minecraft._tcp.moving.play.test'), '0 0 30000 moving.play.test')
    await service.call('PATCH', `/servers/${serverId}`, { body: { game: 'factorio' } })
    await until(async () => (await dns('SRV', '_factorio._udp.moving.play.test')) === '0 0 30000 moving.play.test')
    await calls.settled(body.id)
    assert.equal(await dns('SRV', '_minecraft._tcp.moving.play.test'), 'NXDOMAIN')
    await service.call('PATCH', `/servers/${serverId}`, { body: { game: 'valheim' } })
    await until(async () => (await dns('SRV', '_factorio._udp.moving.play.test')) === 'NXDOMAIN')
    assert.equal((await calls.settled(body.id)).connect, 'moving.play.test:30000')
    assert.equal(await dns('A', 'moving.play.test'), '203.0.113.7')
  })

  test('ports changed in quick succession: the last one stays', async () => {
    const { body } = await calls.create('hasty')
    for (let port = 26000; port < 26010; port++) {
      await service.call('PATCH', `/servers/${serverId}`, { body: { port } })
    }
    await calls.settled(body.id)
    assert.equal(await dns('SRV', '_minecraft._tcp.hasty.play.test'), '0 0 26009 hasty.play.test')
    const waiting = await service.call('GET', `/servers/${serverId}/jobs?status=queued`)
    assert.deepEqual(waiting.body.data, [])
  })

  test('purging a server takes its subdomains out of DNS first', async () => {
    const made = await Promise.all(['one', 'two', 'three'].map((name) => calls.create(`${name}-of-server`)))
    await Promise.all(made.map(({ body }) => calls.settled(body.id)))
    const deletion = await service.call('DELETE', `/servers/${serverId}`, { body: { name: 'Castle', purge: true } })
    assert.equal(deletion.status, 202)
    await until(async () => (await service.call('GET', `/servers/${serverId}`)).status === 404)
    for (const { body } of made) assert.equal(await dns('A', body.hostname), 'NXDOMAIN')
    const rows = await withDatabase(service, (db) =>
      db.selectFrom('subdomains').selectAll().where('server_id', '=', serverId).execute(),
    )
    assert.deepEqual(rows, [])
  })

  test('a server that is being deleted takes no subdomain', async () => {
    const doomed = serverId
    await service.call('DELETE', `/servers/${doomed}`, { body: { name: 'Castle' } })
    const { status, body } = await calls.create('too-late')
    assert.ok(status === 409 && ['server_busy', 'server_deleted'].includes(body.code), `${status}`)
    assert.equal(await dns('A', 'too-late.play.test'), 'NXDOMAIN')
  })

  test('fifty at once for one name: one gets it', async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, async () => (await service.createServer({})).id))
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        service.call('POST', `/subdomains/${ids[i % 10]}/subdomains`, { body: { name: 'prize', zone: 'play.test' } }),
      ),
    )
    const by = Object.groupBy(replies, ({ status }) => String(status))
    assert.deepEqual([by['201']?.length, by['409']?.length], [1, 49])
    assert.ok(by['409']?.every(({ body }) => body.code === 'subdomain_taken'))
  })

  test('names that look alike, at once from two servers: one gets it', async () => {
    const other = (await service.createServer({})).id
    for (let round = 0; round < 5; round++) {
      const replies = await Promise.all([
        calls.create(`gold${round}-mill`),
        service.call('POST', `/subdomains/${other}/subdomains`, {
          body: { name: `go1d${round}mi1l`, zone: 'play.test' },
        }),
      ])
      assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 409])
    }
  })

  test('limits: of the server, and of the zone; fifty at once do not pass them', async () => {
    serverId = (await service.createServer({ limits: { subdomains: 3 } })).id
    const replies = await Promise.all(Array.from({ length: 50 }, (_, i) => calls.create(`lot-${engine}-${i}`)))
    assert.equal(replies.filter(({ status }) => status === 201).length, 3)
    const refused = replies.filter(({ status }) => status !== 201)
    assert.ok(refused.every(({ status, body }) => status === 409 && body.code === 'subdomain_limit_reached'))
    serverId = (await service.createServer({})).id
    assert.equal((await calls.create('first', 'both.test')).status, 201)
    assert.equal((await calls.create('second', 'both.test')).body.code, 'subdomain_limit_reached')
    assert.equal((await calls.create('second', 'play.test')).status, 201)
  })

  test('Refused with subdomain_taken: a name that is taken, one that reads like a name of another server (cast1e for castle), and either for 7 days after it was released (GAMEKEEPER_NAME_HOLD_DAYS, 0 for none), except for the server that had it.', async () => {
    const { body } = await calls.create('released')
    await calls.settled(body.id)
    await calls.removeWholly(body.id)
    const mine = serverId
    serverId = (await service.createServer({})).id
    const held = await calls.create('released')
    assert.equal(held.status, 409)
    assert.equal(held.body.code, 'subdomain_taken')
    const day = new Date(Date.now() + 7 * 24 * 3600_000).toISOString().slice(0, 10)
    assert.match(held.body.detail, new RegExp(`held back until ${day}`))
    assert.equal((await calls.create('re1eased')).body.code, 'subdomain_taken')
    serverId = mine
    assert.equal((await calls.create('released')).status, 201)
  })

  test('a held name is free when its time is over', async () => {
    const { body } = await calls.create('long-ago')
    await calls.settled(body.id)
    await calls.remove(body.id)
    await withDatabase(service, (db) =>
      db
        .updateTable('held_names')
        .set({ until: Date.now() - 1 })
        .execute(),
    )
    serverId = (await service.createServer({})).id
    assert.equal((await calls.create('long-ago')).status, 201)
  })

  test('bad names and zones name the field', async () => {
    const bad = [
      '',
      '-a',
      'a-',
      '_a',
      'a.b',
      'ä',
      'xn--a',
      'ab--c',
      'www',
      'WWW',
      'panel',
      'pane1',
      'arena',
      'a'.repeat(64),
    ]
    for (const name of bad) {
      const { status, body } = await calls.create(name)
      assert.equal(status, 400, name)
      assert.equal(body.code, 'invalid_request')
      assert.ok(body.errors.length > 0 && body.errors.every(({ path }: { path: string }) => path === '/name'), name)
    }
    const nowhere = await calls.create('castle2', 'elsewhere.test')
    assert.equal(nowhere.status, 400)
    assert.deepEqual(
      nowhere.body.errors.map(({ path }: { path: string }) => path),
      ['/zone'],
    )
    const both = await service.call('POST', calls.at(), { body: { name: '-', zone: '', colour: 'red' } })
    assert.equal(both.body.errors.length, 3)
  })

  test('zones: what there is, what is used, what is left', async () => {
    serverId = (await service.createServer({ limits: { subdomains: 5 } })).id
    await calls.create('counted', 'both.test')
    const { status, body } = await service.call('GET', `/subdomains/${serverId}/zones`)
    assert.equal(status, 200)
    assert.deepEqual(body.data, [
      { zone: 'play.test', provider: 'embedded', ttl: 60, targets: ['203.0.113.7'], used: 0, limit: 5 },
      { zone: 'both.test', provider: 'embedded', ttl: 120, targets: ['203.0.113.7', '2001:db8::7'], used: 1, limit: 1 },
      { zone: 'host.test', provider: 'embedded', ttl: 60, targets: ['node7.example.org'], used: 0, limit: 5 },
    ])
  })

  test('list: newest first, page by page', async () => {
    const made = []
    for (const name of ['page-a', 'page-b', 'page-c']) made.push((await calls.create(name)).body.id)
    const first = await service.call('GET', calls.at('?limit=2'))
    assert.deepEqual(
      first.body.data.map(({ id }: { id: string }) => id),
      [made[2], made[1]],
    )
    const second = await service.call('GET', calls.at(`?limit=2&cursor=${first.body.nextCursor}`))
    assert.deepEqual(
      second.body.data.map(({ id }: { id: string }) => id),
      [made[0]],
    )
    assert.equal(second.body.nextCursor, null)
  })

  test('who may: the scopes, the server, and all servers for a check', async () => {
    const { body } = await calls.create('guarded')
    const reader = (await service.mint(['subdomains:read'])).token
    const writer = (await service.mint(['subdomains:write'])).token
    const other = (await service.mint(['*'], [(await service.createServer({})).id])).token
    const attempt = async (method: string, path: string, token: string, sent?: object) =>
      (await service.call(method, path, { token, ...(sent ? { body: sent } : {}) })).status
    assert.equal(await attempt('GET', calls.at(), writer), 403)
    assert.equal(await attempt('GET', `/subdomains/${serverId}/zones`, writer), 403)
    assert.equal(await attempt('POST', calls.at(), reader, { name: 'nope', zone: 'play.test' }), 403)
    assert.equal(await attempt('DELETE', calls.at(`/${body.id}`), reader), 403)
    assert.equal(await attempt('DELETE', calls.at(`/${body.id}`), other), 404)
    assert.equal(await attempt('GET', calls.at(`/${body.id}`), other), 404)
    assert.equal(await attempt('POST', '/dns/check', other, {}), 403)
    assert.equal(await attempt('POST', '/dns/check', reader, {}), 403)
    const elsewhere = (await service.createServer({})).id
    assert.equal((await service.call('GET', `/subdomains/${elsewhere}/subdomains/${body.id}`)).status, 404)
  })

  test('the same key makes one subdomain', async () => {
    const options = { body: { name: 'only-once', zone: 'play.test' }, headers: { 'idempotency-key': `k-${engine}` } }
    const replies = [await service.call('POST', calls.at(), options), await service.call('POST', calls.at(), options)]
    assert.deepEqual(
      replies.map(({ status }) => status),
      [201, 201],
    )
    assert.equal(replies[0]?.body.id, replies[1]?.body.id)
  })
})

test('with a hold of no days a released name is free at once', async () => {
  await using service = await startTestService({
    env: { GAMEKEEPER_ZONES: JSON.stringify(ZONES), GAMEKEEPER_NAME_HOLD_DAYS: '0', ...LOCAL_DNS },
  })
  let serverId = (await service.createServer({})).id
  const calls = subdomainCalls(service, () => serverId)
  const { body } = await calls.create('passing')
  await calls.settled(body.id)
  await calls.removeWholly(body.id)
  serverId = (await service.createServer({})).id
  assert.equal((await calls.create('passing')).status, 201)
})

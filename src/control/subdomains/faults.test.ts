// A provider that misbehaves, before a real PowerDNS: the API answers in time, the state is true, the work goes on when
// the fault is over, nothing is orphaned and nothing of others is touched.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Fault, type FaultyProxy, startFaultyProxy } from '../../../test/support/http-proxy.ts'
import { needs } from '../../../test/support/needs.ts'
import { type PowerDnsServer, startPowerDns } from '../../../test/support/powerdns.ts'
import { spawnService } from '../../../test/support/process.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { ask, subdomainCalls } from '../../../test/support/subdomains.ts'
import { until } from '../../../test/support/until.ts'

const CASES: { name: string; fault: Fault; reason: string; status: string }[] = [
  { name: 'down', fault: { kind: 'down' }, reason: 'unreachable', status: 'pending' },
  { name: 'silent', fault: { kind: 'silent' }, reason: 'unreachable', status: 'pending' },
  { name: 'broken', fault: { kind: 'status', status: 500 }, reason: 'server_error', status: 'pending' },
  {
    name: 'limited',
    fault: { kind: 'status', status: 429, headers: { 'retry-after': '2' } },
    reason: 'rate_limited',
    status: 'pending',
  },
  { name: 'lying', fault: { kind: 'lies' }, reason: 'unconfirmed', status: 'pending' },
  { name: 'revoked', fault: { kind: 'status', status: 401 }, reason: 'refused', status: 'failed' },
  { name: 'zoneless', fault: { kind: 'status', status: 404 }, reason: 'zone_missing', status: 'failed' },
  { name: 'refusing', fault: { kind: 'status', status: 422 }, reason: 'invalid', status: 'failed' },
]
const zoneOf = (name: string) => `${name}-zone.test`
const NAMES = [...CASES.map(({ name }) => name), 'leaving', 'deaf', 'checked']
const THEIRS = '198.51.100.9'

describe('a misbehaving provider', { concurrency: true, ...needs('powerdns') }, () => {
  let pdns: PowerDnsServer
  let proxy: FaultyProxy
  let service: TestService
  before(async () => {
    pdns = await startPowerDns()
    proxy = await startFaultyProxy(pdns.url)
    for (const name of NAMES) {
      const records = [{ content: THEIRS, disabled: false }]
      await pdns.createZone(zoneOf(name), [{ name: `theirs.${zoneOf(name)}.`, type: 'A', ttl: 60, records }])
    }
    const zones = NAMES.map((name) => ({
      zone: zoneOf(name),
      provider: 'powerdns',
      target: '203.0.113.7',
      url: proxy.url,
      apiKey: { env: 'PDNS_KEY' },
      nameServers: [pdns.dns],
    }))
    service = await startTestService({ env: { GAMEKEEPER_ZONES: JSON.stringify(zones), PDNS_KEY: pdns.apiKey } })
  })
  after(async () => {
    await service.stop()
    await proxy.stop()
    await pdns.stop()
  })

  async function begin(name: string) {
    const serverId = (await service.createServer({ game: 'minecraft-java', port: 25566 })).id
    const calls = subdomainCalls(service, () => serverId)
    const dns = (host: string) => ask(pdns.dns, 'A', `${host}.${zoneOf(name)}`)
    return { serverId, calls, dns }
  }
  /** Somebody has put it right and says so; without that it is tried again within the minute. */
  const repair = () => service.call('POST', '/dns/check', { body: { repair: true } })

  /** A comparison that did not come through is made again. */
  const untilRepaired = (id: string, calls: ReturnType<typeof subdomainCalls>) =>
    until(async () => {
      await repair()
      return (await calls.read(id)).body.status !== 'failed'
    })

  for (const { name, fault, reason, status } of CASES) {
    test(`${name}: ${reason}`, async () => {
      const { serverId, calls, dns } = await begin(name)
      proxy.set(zoneOf(name), fault)
      const created = await calls.create('castle', zoneOf(name))
      assert.equal(created.status, 201)
      const { id } = created.body
      // On a busy machine a provider may also seem unreachable for a while.
      const codeOf = (now: object) => (now as { reason: { code: string } | null }).reason?.code
      const stuck = await calls.reaches(id, (now) => codeOf(now) === reason)
      assert.equal(stuck.status, status)
      assert.equal(stuck.propagatedAt, null)
      proxy.set(zoneOf(name), null)
      if (status === 'failed') await untilRepaired(id, calls)
      const active = await calls.settled(id)
      assert.deepEqual([active.status, active.reason], ['active', null])
      assert.equal(await dns('castle'), '203.0.113.7')

      proxy.set(zoneOf(name), fault)
      const askedAt = performance.now()
      for (const removed of await Promise.all([calls.remove(id), calls.remove(id)])) {
        assert.equal(removed.status, 202)
        assert.equal(removed.body.status, 'deleting')
      }
      const waitedMs = performance.now() - askedAt
      assert.ok(waitedMs > 4900, `the provider has 5 s to confirm it, and was given ${Math.round(waitedMs)} ms`)
      assert.equal(await dns('castle'), '203.0.113.7', 'it is still there, and said to be')
      assert.equal((await calls.reaches(id, (now) => now.reason)).status, 'deleting')
      const queued = await service.call('GET', `/servers/${serverId}/jobs?status=queued`)
      const running = await service.call('GET', `/servers/${serverId}/jobs?status=running`)
      assert.ok(queued.body.data.length + running.body.data.length <= 2, 'work does not pile up')
      proxy.set(zoneOf(name), null)
      await repair()
      await calls.gone(id)
      await until(async () => (await dns('castle')) === 'NXDOMAIN')
      assert.equal(await dns('theirs'), THEIRS)
      const events = (await calls.events()).map(({ event }) => event)
      assert.deepEqual(events, [
        'subdomain.deleted',
        'subdomain.provider_failed',
        'subdomain.deletion_started',
        'subdomain.activated',
        'subdomain.provider_failed',
        'subdomain.created',
      ])
    })
  }

  test('done, but the answer is lost: found to be so, and no conflict with ourselves', async () => {
    const { calls, dns } = await begin('deaf')
    proxy.set(zoneOf('deaf'), { kind: 'deaf' })
    const { id } = (await calls.create('castle', zoneOf('deaf'))).body
    const active = await calls.settled(id)
    assert.equal(active.status, 'active')
    assert.equal(await dns('castle'), '203.0.113.7')
    await calls.removeWholly(id)
    await until(async () => (await dns('castle')) === 'NXDOMAIN')
    proxy.set(zoneOf('deaf'), null)
  })

  test('Nothing is removed from the database before it has been removed from DNS.', async () => {
    const { serverId, calls, dns } = await begin('leaving')
    const { id } = (await calls.create('castle', zoneOf('leaving'))).body
    await calls.settled(id)
    proxy.set(zoneOf('leaving'), { kind: 'down' })
    const deletion = await service.call('DELETE', `/servers/${serverId}`, { body: { name: 'Castle' } })
    assert.equal(deletion.status, 202)
    const job = await until(async () => {
      const { body } = await service.call('GET', `/servers/${serverId}/jobs/${deletion.body.id}`)
      return body.error ? body : undefined
    })
    assert.equal(job.error.code, 'dns_unavailable')
    assert.equal((await calls.read(id)).body.status, 'withdrawn')
    assert.equal(await dns('castle'), '203.0.113.7')
    proxy.set(zoneOf('leaving'), null)
    await until(async () => (await service.call('GET', `/servers/${serverId}`)).body.status === 'deleted')
    await until(async () => (await dns('castle')) === 'NXDOMAIN')
    assert.equal(await dns('theirs'), THEIRS)
  })

  test('a check answers in time and says which zone could not be looked at', async () => {
    proxy.set(zoneOf('checked'), { kind: 'silent' })
    const { status, body } = await service.call('POST', '/dns/check', { body: {} })
    assert.equal(status, 200)
    const finding = body.findings.find((one: { zone: string }) => one.zone === zoneOf('checked'))
    assert.equal(finding.kind, 'unreachable')
    proxy.set(zoneOf('checked'), null)
  })
})

test('They appear in no log, error or answer.', needs('powerdns'), async () => {
  const pdns = await startPowerDns()
  const proxy = await startFaultyProxy(pdns.url)
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-secrets-'))
  const adminToken = `gk_admin_${'ab'.repeat(32)}`
  const secret = 'very-secret-api-key'
  const zone = { provider: 'powerdns', target: '203.0.113.7', url: proxy.url, apiKey: { env: 'PDNS_KEY' } }
  const faults: Record<string, Fault> = {
    'a.test': { kind: 'down' },
    'b.test': { kind: 'status', status: 500 },
    'c.test': { kind: 'status', status: 401 },
    'd.test': { kind: 'lies' },
  }
  for (const [word, fault] of Object.entries(faults)) proxy.set(word, fault)
  const child = await spawnService({
    GAMEKEEPER_DATA_DIR: dataDir,
    GAMEKEEPER_ADMIN_TOKEN: adminToken,
    GAMEKEEPER_LOG_LEVEL: 'trace',
    GAMEKEEPER_ZONES: JSON.stringify(Object.keys(faults).map((name) => ({ ...zone, zone: name }))),
    PDNS_KEY: secret,
  })
  try {
    let said = ''
    const call = async (method: string, path: string, body?: object) => {
      const response = await fetch(`${child.url}/v1/game${path}`, {
        method,
        headers: { authorization: `Bearer ${adminToken}`, ...(body ? { 'content-type': 'application/json' } : {}) },
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
      const text = await response.text()
      said += text
      return JSON.parse(text)
    }
    const { id } = await call('POST', '/servers', { name: 'Castle' })
    const at = `/subdomains/${id}/subdomains`
    for (const name of Object.keys(faults)) await call('POST', at, { name: 'castle', zone: name })
    await until(async () => (await call('GET', at)).data.every((one: { reason: unknown }) => one.reason))
    await call('POST', '/dns/check', { repair: true })
    for (const path of [`/subdomains/${id}/zones`, `/servers/${id}/jobs`, `/servers/${id}/activity`])
      await call('GET', path)
    assert.match(said, /"server_error"/)
    assert.match(said, /"refused"/)
    assert.match(child.output(), /DNS could not be brought up to date/)
    assert.ok(!said.includes(secret) && !child.output().includes(secret))
  } finally {
    await child.kill('SIGTERM')
    await proxy.stop()
    await pdns.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
})

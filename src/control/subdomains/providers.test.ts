// The service with each provider behind it: real PowerDNS, real BIND, the stand-in for Cloudflare.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBind } from '../../../test/support/bind.ts'
import { startCloudflare } from '../../../test/support/cloudflare.ts'
import { needs } from '../../../test/support/needs.ts'
import { startPowerDns } from '../../../test/support/powerdns.ts'
import { startTestService } from '../../../test/support/service.ts'
import { ask, subdomainCalls } from '../../../test/support/subdomains.ts'
import { until } from '../../../test/support/until.ts'
import type { Endpoint } from '../../dns/provider.ts'

const SRV = '_minecraft._tcp.castle.play.test'

/** Create, asked for over DNS, port changed, deleted, gone; the neighbour's record stays. */
async function walkThrough(zone: object, dns: Endpoint, env: Record<string, string>): Promise<void> {
  await using service = await startTestService({
    env: { GAMEKEEPER_ZONES: JSON.stringify([{ zone: 'play.test', target: '203.0.113.7', ...zone }]), ...env },
  })
  const serverId = (await service.createServer({ game: 'minecraft-java', port: 25566 })).id
  const calls = subdomainCalls(service, () => serverId)
  const { status, body } = await calls.create('castle')
  assert.equal(status, 201)
  const { propagatedAt } = await calls.settled(body.id)
  assert.equal(await ask(dns, 'SRV', SRV), '0 0 25566 castle.play.test')
  assert.equal(await ask(dns, 'A', 'castle.play.test'), '203.0.113.7')
  await service.call('PATCH', `/servers/${serverId}`, { body: { port: 25577 } })
  await calls.reaches(body.id, (now) => now.propagatedAt && now.propagatedAt !== propagatedAt)
  assert.equal(await ask(dns, 'SRV', SRV), '0 0 25577 castle.play.test')
  const taken = await calls.create('neighbour')
  const failed = await calls.reaches(taken.body.id, (now) => now.status === 'failed')
  assert.equal((failed.reason as unknown as { code: string }).code, 'conflict')
  for (const id of [body.id, taken.body.id]) {
    await calls.removeWholly(id)
  }
  await until(async () => (await ask(dns, 'SRV', SRV)) === 'NXDOMAIN')
  await until(async () => (await ask(dns, 'A', 'castle.play.test')) === 'NXDOMAIN')
  assert.equal(await ask(dns, 'A', 'neighbour.play.test'), '198.51.100.9')
}

test('PowerDNS: created and answered, changed, deleted and NXDOMAIN', needs('powerdns'), async () => {
  const pdns = await startPowerDns()
  try {
    const records = [{ content: '198.51.100.9', disabled: false }]
    await pdns.createZone('play.test', [{ name: 'neighbour.play.test.', type: 'A', ttl: 60, records }])
    const zone = { provider: 'powerdns', url: pdns.url, apiKey: { env: 'PDNS_KEY' }, nameServers: [pdns.dns] }
    await walkThrough(zone, pdns.dns, { PDNS_KEY: pdns.apiKey })
  } finally {
    await pdns.stop()
  }
})

test('BIND by RFC 2136: created and answered, changed, deleted and NXDOMAIN', needs('bind'), async () => {
  const bind = await startBind('play.test', ['neighbour IN A 198.51.100.9'])
  try {
    const zone = { provider: 'rfc2136', server: bind.server, keyName: bind.keyName, keySecret: { env: 'TSIG_SECRET' } }
    await walkThrough(zone, bind.server, { TSIG_SECRET: bind.keySecret })
  } finally {
    await bind.stop()
  }
})

test('Cloudflare: records made, DNS only, and removed; its name servers are asked for the propagation', async () => {
  const neighbour = { name: 'neighbour.play.test', type: 'A', content: '198.51.100.9', ttl: 60, proxied: true }
  const cloudflare = await startCloudflare({ 'play.test': [neighbour] })
  const zone = { zone: 'play.test', provider: 'cloudflare', target: '203.0.113.7', token: { env: 'CF_TOKEN' } }
  await using service = await startTestService({
    env: {
      GAMEKEEPER_ZONES: JSON.stringify([{ ...zone, baseUrl: cloudflare.baseUrl }]),
      CF_TOKEN: cloudflare.token,
    },
  })
  try {
    const serverId = (await service.createServer({ game: 'minecraft-java', port: 25566 })).id
    const calls = subdomainCalls(service, () => serverId)
    const { body } = await calls.create('castle')
    const active = await calls.reaches(body.id, (now) => now.status === 'active')
    // The stand-in has no name servers that could be asked, and nothing is assumed.
    assert.equal(active.propagatedAt, null)
    const made = cloudflare.records('play.test').filter(({ name }) => name.endsWith('castle.play.test'))
    assert.deepEqual(made.map(({ type, proxied }) => [type, proxied]).sort(), [
      ['A', false],
      ['SRV', false],
      ['TXT', false],
    ])
    await calls.removeWholly(body.id)
    assert.deepEqual(
      cloudflare.records('play.test').map(({ id: _, ...record }) => record),
      [neighbour],
    )
  } finally {
    await cloudflare.stop()
  }
})

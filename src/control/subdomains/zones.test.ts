import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ConfigFault, readConfig } from '../config.ts'
import { parseZones } from './zones.ts'

const directory = mkdtempSync(join(tmpdir(), 'gamekeeper-zones-'))
after(() => rmSync(directory, { recursive: true, force: true }))
const embedded = { zone: 'play.test', provider: 'embedded', target: '203.0.113.7' }
const faultsOf = (zones: unknown, env: Record<string, string> = {}) => {
  const text = typeof zones === 'string' ? zones : JSON.stringify(zones)
  try {
    readConfig({ GAMEKEEPER_ZONES: text, ...env })
  } catch (error) {
    assert.ok(error instanceof ConfigFault)
    return error.message
  }
  return ''
}

test('zones as JSON or from a file, in one spelling', () => {
  const [zone] = parseZones(
    JSON.stringify([{ ...embedded, zone: 'Play.Test.', target: ['203.0.113.7', '2001:DB8::7'] }]),
    {},
  )
  assert.equal(zone?.zone, 'play.test')
  assert.deepEqual(zone?.targets, ['203.0.113.7', '2001:db8::7'])
  assert.equal(zone?.ttl, 60)
  const path = join(directory, 'zones.json')
  writeFileSync(path, JSON.stringify([embedded]))
  assert.equal(parseZones(path, {})[0]?.zone, 'play.test')
})

test('credentials come from the variable or the file that is named', () => {
  const keyFile = join(directory, 'key')
  writeFileSync(keyFile, 'from-file\n')
  const pdns = { zone: 'a.test', provider: 'powerdns', target: '203.0.113.7', url: 'http://127.0.0.1:8081' }
  assert.equal(
    parseZones(JSON.stringify([{ ...pdns, apiKey: { env: 'KEY' } }]), { KEY: 'from-env' })[0]?.credential,
    'from-env',
  )
  assert.equal(parseZones(JSON.stringify([{ ...pdns, apiKey: { file: keyFile } }]), {})[0]?.credential, 'from-file')
})

test('every fault of every zone is named at once', () => {
  const said = faultsOf(
    [
      { zone: 'a.test', provider: 'route53', target: '203.0.113.7' },
      { zone: 'not a zone', provider: 'embedded', target: '203.0.113.7', ttl: 0, colour: 'red' },
      {
        zone: 'b.test',
        provider: 'powerdns',
        target: '203.0.113.7',
        url: 'http://127.0.0.1:1',
        apiKey: { env: 'NO_KEY' },
      },
      { zone: 'c.test', provider: 'cloudflare', target: '203.0.113.7', ttl: 30, token: { file: '/no/such/file' } },
      {
        zone: 'd.test',
        provider: 'rfc2136',
        target: 'x..y',
        server: { host: 'h', port: 53 },
        keyName: 'gamekeeper',
        keySecret: { env: 'K' },
      },
      { zone: 'e.test', provider: 'embedded', target: ['203.0.113.7', 'host.example.org'] },
      embedded,
      embedded,
    ],
    { GAMEKEEPER_DNS_PORT: '70000', K: 'no base64!' },
  )
  for (const part of [
    '[0] provider must be one of embedded, powerdns, rfc2136, cloudflare',
    '[1] colour is not a known setting',
    'zone must match',
    'ttl must be >= 1',
    'NO_KEY is not set',
    'ttl must be >= 60',
    'target x..y is neither an address nor a host name, The TSIG secret is not base64',
    'several addresses, or one host name',
    'has play.test twice',
    'GAMEKEEPER_DNS_PORT',
  ]) {
    assert.ok(said.includes(part), `${part} in ${said}`)
  }
})

test('a provider that is not known hides no other fault of its zone', () => {
  const common = { zone: 'bad zone', ttl: -1, reserved: [7], maxPerServer: 0.5 }
  const known = faultsOf([{ ...common, provider: 'embedded' }])
  const said = faultsOf([{ ...common, provider: 'nope', zz: 1 }])
  const expected = known.replace('[0] ', '[0] provider must be one of embedded, powerdns, rfc2136, cloudflare, ')
  assert.equal(said, expected)
  for (const part of [
    'zone must match',
    'ttl must be >= 1',
    "property 'target'",
    'reserved/0 must',
    'maxPerServer must',
  ])
    assert.ok(said.includes(part), `${part} in ${said}`)
  const targets = ['203.0.113.7', 'x..y']
  const faulty = faultsOf([{ zone: 'a.test', target: targets }, 7, { ...embedded, provider: 'toString', ttl: 0 }])
  for (const part of [
    '[0] provider must',
    'target x..y is',
    '[1] provider must',
    '[2] provider must',
    'ttl must be >= 1',
  ])
    assert.ok(faulty.includes(part), `${part} in ${faulty}`)
  const formed = faultsOf([{ ...embedded, target: 'x..y', ttl: 0 }])
  for (const part of ['target x..y is', 'ttl must be >= 1']) assert.ok(formed.includes(part), `${part} in ${formed}`)
})

test('a fault never quotes a credential', () => {
  const secret = 'käse-secret'
  const cloudflare = { zone: 'c.test', provider: 'cloudflare', target: '203.0.113.7', token: { env: 'T' } }
  const pdns = {
    zone: 'p.test',
    provider: 'powerdns',
    target: '203.0.113.7',
    url: `http://u:${secret}@h`,
    apiKey: { env: 'T' },
  }
  const inline = { zone: 'q.test', provider: 'cloudflare', target: '203.0.113.7', token: secret }
  const said = faultsOf([cloudflare, pdns, inline], { T: secret })
  assert.match(said, /\[0\].*\[1\].*\[2\]/)
  assert.ok(!said.includes('secret'), said)
})

test('not JSON, not a list, no such file', () => {
  assert.match(faultsOf('[{'), /GAMEKEEPER_ZONES is not valid JSON/)
  assert.match(faultsOf('/no/such/zones.json'), /the file of zones cannot be read from \/no\/such\/zones.json/)
  const path = join(directory, 'object.json')
  writeFileSync(path, '{}')
  assert.match(faultsOf(path), /must be a JSON list of zones/)
})

test('names that the configuration uses itself are reserved', () => {
  const zones = [
    { ...embedded, nameServers: ['dns-a.play.test', 'ns.example.org'], target: 'node7.play.test' },
    { ...embedded, zone: 'eu.play.test' },
  ]
  assert.deepEqual(parseZones(JSON.stringify(zones), {})[0]?.reserved, ['dns-a', 'node7', 'eu'])
})

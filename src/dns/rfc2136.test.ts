import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBind } from '../../test/support/bind.ts'
import { freePort, startSilentServer } from '../../test/support/daemons.ts'
import { needs } from '../../test/support/needs.ts'
import { providerContract } from './provider.contract.ts'
import type { Change } from './provider.ts'
import { sameRecordSet } from './records.ts'
import { createRfc2136 } from './rfc2136.ts'

providerContract('RFC 2136 with BIND', needs('bind'), async () => {
  const zone = 'play.test'
  const bind = await startBind(zone, ['keep IN A 192.0.2.99', 'mail IN MX 10 mx.example.net.'])
  const silent = await startSilentServer()
  const { server, keyName, keySecret } = bind
  const wrong = Buffer.from('not the secret of that key').toString('base64')
  return {
    provider: createRfc2136({ server, keyName, keySecret }),
    zone,
    foreign: { name: `keep.${zone}`, type: 'A', ttl: 300, records: [{ address: '192.0.2.99' }] },
    foreignOther: { name: `mail.${zone}`, type: 'MX' },
    badCredentials: { provider: createRfc2136({ server, keyName, keySecret: wrong }), secrets: [wrong, keySecret] },
    unreachable: createRfc2136({ server: { host: '127.0.0.1', port: await freePort() }, keyName, keySecret }),
    silent: createRfc2136({ server: { host: '127.0.0.1', port: silent.port }, keyName, keySecret, timeoutMs: 300 }),
    dns: server,
    async close() {
      await silent.close()
      await bind.stop()
    },
  }
})

test('a zone that takes many messages to transfer is listed whole', needs('bind'), async (t) => {
  const names = Array.from({ length: 5_000 }, (_, index) => `n${index}`)
  const bind = await startBind('large.test', [...names.map((name) => `${name} IN TXT "${'x'.repeat(100)}"`)])
  t.after(() => bind.stop())
  const { recordSets } = await createRfc2136(bind).list('large.test')
  const listed = new Set(recordSets.filter(({ type }) => type === 'TXT').map(({ name }) => name))
  assert.deepEqual(listed, new Set(names.map((name) => `${name}.large.test`)))
})

test('changes too large for one message are sent in several', needs('bind'), async (t) => {
  const zone = 'large.test'
  const bind = await startBind(zone, [])
  t.after(() => bind.stop())
  const provider = createRfc2136(bind)
  const changes = Array.from({ length: 40 }, (_, index): Change => {
    return { name: `n${index}.${zone}`, type: 'TXT', ttl: 60, records: [{ text: `${index} ${'x'.repeat(4000)}` }] }
  })
  await provider.apply(zone, changes)
  const { recordSets } = await provider.list(zone)
  for (const change of changes) assert.ok(recordSets.some((set) => sameRecordSet(set, change)))
})

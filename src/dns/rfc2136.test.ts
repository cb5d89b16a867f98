import { startBind } from '../../test/support/bind.ts'
import { freePort, startSilentServer } from '../../test/support/daemons.ts'
import { needs } from '../../test/support/needs.ts'
import { providerContract } from './provider.contract.ts'
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

import { freePort, startSilentServer } from '../../test/support/daemons.ts'
import { needs } from '../../test/support/needs.ts'
import { startPowerDns } from '../../test/support/powerdns.ts'
import { createPowerDns } from './powerdns.ts'
import { providerContract } from './provider.contract.ts'

providerContract('PowerDNS', needs('powerdns'), async () => {
  const server = await startPowerDns()
  const silent = await startSilentServer()
  const zone = 'play.test'
  const content = (text: string) => [{ content: text, disabled: false }]
  await server.createZone(zone, [
    { name: `keep.${zone}.`, type: 'A', ttl: 300, records: content('192.0.2.99') },
    { name: `mail.${zone}.`, type: 'MX', ttl: 300, records: content('10 mx.example.net.') },
  ])
  const settings = { url: server.url, apiKey: server.apiKey, nameServers: [server.dns] }
  return {
    provider: createPowerDns(settings),
    zone,
    foreign: { name: `keep.${zone}`, type: 'A', ttl: 300, records: [{ address: '192.0.2.99' }] },
    foreignOther: { name: `mail.${zone}`, type: 'MX' },
    badCredentials: { provider: createPowerDns({ ...settings, apiKey: 'stolen-key' }), secrets: ['stolen-key'] },
    unreachable: createPowerDns({ ...settings, url: `http://127.0.0.1:${await freePort()}` }),
    silent: createPowerDns({ ...settings, url: `http://127.0.0.1:${silent.port}`, timeoutMs: 300 }),
    dns: server.dns,
    async close() {
      await silent.close()
      await server.stop()
    },
  }
})

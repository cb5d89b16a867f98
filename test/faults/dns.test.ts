import { it } from 'node:test'
import { needs } from '../support/needs.ts'
import { run } from './dns.ts'

it('DNS and database agree after 6 kills, embedded', async (t) => {
  await run(6, 'embedded', (line) => t.diagnostic(line))
})

it('DNS and database agree after 2 kills, PowerDNS', needs('powerdns'), async (t) => {
  await run(2, 'powerdns', (line) => t.diagnostic(line))
})

import { it } from 'node:test'
import { needs } from '../support/needs.ts'
import { run } from './dns.ts'

it('DNS and database agree after 3 kills, embedded', async (t) => {
  await run(3, 'embedded', (line) => t.diagnostic(line))
})

it('DNS and database agree after one kill, PowerDNS', needs('powerdns'), async (t) => {
  await run(1, 'powerdns', (line) => t.diagnostic(line))
})

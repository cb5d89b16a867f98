// Subdomains against DNS itself: what was created is answered, what was deleted is not, and nobody is left in between.
import { askAuthority } from '../../../../src/dns/resolve.ts'
import { until } from '../../../support/until.ts'
import { ZONE } from '../keeper.ts'
import type { Round } from '../round.ts'
import { listAll } from './work.ts'

interface Subdomain {
  id: string
  name: string
  status: string
}

export async function checkDns(round: Round): Promise<void> {
  if (round.subdomains.known.size === 0) return
  const listed = new Map<string, Subdomain>()
  for (const server of round.servers) {
    const path = `/subdomains/${server.id}/subdomains`
    // What is under way is tried again until it is done.
    const settled = await until(async () => {
      const found = (await listAll<Subdomain>(round, path)) ?? []
      return found.every(({ status }) => status === 'active') && found
    }).catch(() => [])
    for (const subdomain of settled) listed.set(subdomain.name, subdomain)
  }
  for (const [name, { isThere }] of round.subdomains.known) {
    const found = listed.has(name)
    if (isThere !== 'unknown' && isThere !== found)
      round.violation(`the subdomain ${name} is ${found ? '' : 'not '}in the list, and the opposite was answered`)
    const answers = await isAnswered(round, name)
    if (answers !== found)
      round.violation(`the subdomain ${name} is ${answers ? '' : 'not '}in DNS, unlike in the list`)
  }
}

async function isAnswered({ keeper }: Round, name: string): Promise<boolean> {
  const { recordSet } = await askAuthority({ host: '127.0.0.1', port: keeper.dnsPort }, `${name}.${ZONE}`, 'A')
  return recordSet !== undefined && recordSet !== null
}

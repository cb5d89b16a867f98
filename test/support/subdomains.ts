// What tests of subdomains ask again and again: make one, wait until it is so, and ask DNS itself.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Endpoint } from '../../src/dns/provider.ts'
import type { ChangeableRecordSet, RecordType } from '../../src/dns/records.ts'
import { askAuthority } from '../../src/dns/resolve.ts'
import type { TestService } from './service.ts'
import { until } from './until.ts'

export const LOCAL_DNS = { GAMEKEEPER_DNS_PORT: '0', GAMEKEEPER_DNS_HOST: '127.0.0.1' }

/** As `dig` shows them: `NXDOMAIN`, `NOERROR` without records, or the records. */
export async function ask(server: Endpoint | null, type: RecordType, name: string): Promise<string> {
  if (!server) throw new Error('no DNS server')
  const { rcode, recordSet } = await askAuthority(server, name, type)
  if (!recordSet) return rcode
  return recordSet.records.map((record) => Object.values(record).join(' ')).join(', ')
}

export function subdomainCalls(service: TestService, serverId: () => string) {
  const at = (rest = '') => `/subdomains/${serverId()}/subdomains${rest}`
  const read = (id: string) => service.call('GET', at(`/${id}`))
  const reaches = (id: string, wanted: (body: Record<string, never>) => unknown) =>
    until(async () => {
      const { body } = await read(id)
      return wanted(body) ? body : undefined
    })
  const remove = (id: string, token?: string) => service.call('DELETE', at(`/${id}`), token ? { token } : {})
  const gone = (id: string) => until(async () => (await read(id)).status === 404)
  return {
    at,
    read,
    create: (name: string, zone = 'play.test') => service.call('POST', at(), { body: { name, zone } }),
    remove,
    /** One that takes more than a moment is answered with 202, and goes on. */
    async removeWholly(id: string, token?: string) {
      const { status, text } = await remove(id, token)
      assert.ok(status === 204 || status === 202, text)
      await gone(id)
    },
    reaches,
    /** Confirmed by the provider and answered over DNS. */
    settled: (id: string) => reaches(id, (body) => body.propagatedAt),
    gone,
    events: async (): Promise<{ event: string; properties: Record<string, unknown>; actor: { id: string } }[]> =>
      (await service.call('GET', `/servers/${serverId()}/activity?event=subdomain.*`)).body.data,
  }
}

/** The records of an embedded zone as they lie on disk; only while the service is halted. */
export async function editZoneFile(
  service: Pick<TestService, 'dataDir'>,
  zone: string,
  edit: (sets: ChangeableRecordSet[]) => ChangeableRecordSet[],
): Promise<void> {
  const path = join(service.dataDir, 'dns', `${zone}.json`)
  const stored = JSON.parse(await readFile(path, 'utf8'))
  await writeFile(path, JSON.stringify({ ...stored, recordSets: edit(stored.recordSets) }))
}

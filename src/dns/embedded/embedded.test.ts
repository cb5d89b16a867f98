import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { providerContract } from '../provider.contract.ts'
import type { RecordSetOf } from '../records.ts'
import { createEmbeddedDns } from './provider.ts'
import { createZoneFiles } from './zonefile.ts'

providerContract('embedded', { inProcess: true }, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'gamekeeper-zones-'))
  const zone = 'play.test'
  const foreign: RecordSetOf<'A'> = { name: `keep.${zone}`, type: 'A', ttl: 300, records: [{ address: '192.0.2.99' }] }
  const store = createZoneFiles(directory)
  await store.save({ zone, serial: 1, recordSets: [foreign] })
  const provider = await createEmbeddedDns({ zones: [{ zone }], store, host: '127.0.0.1', port: 0 })
  return {
    provider,
    zone,
    foreign,
    foreignOther: null,
    badCredentials: null,
    unreachable: null,
    silent: null,
    dns: { host: provider.host, port: provider.port },
    async close() {
      await provider.close()
      await rm(directory, { recursive: true })
    },
  }
})

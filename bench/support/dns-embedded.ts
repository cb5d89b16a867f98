// The embedded server in a process of its own, as it is in production but for the rate limit, which loopback would hit
// at once: it is set beyond reach, so that its cost is still paid.
import { createEmbeddedDns } from '../../src/dns/embedded/provider.ts'
import { createZoneFiles } from '../../src/dns/embedded/zonefile.ts'

const [zone = '', directory = ''] = process.argv.slice(2)
const options = { zones: [{ zone }], host: '127.0.0.1', port: 0, responsesPerSecond: 1_000_000_000 }
const dns = await createEmbeddedDns({ ...options, store: createZoneFiles(directory) })
console.log(`listening on ${dns.port}`)

// What docs/subdomains.md shows is run as it stands, but for the ports.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { freePort } from '../../../test/support/daemons.ts'
import { needs } from '../../../test/support/needs.ts'
import { DNS_REASONS, SUBDOMAIN_STATUSES } from '../../contract/subdomains.ts'
import { parseZones } from './zones.ts'

const ROOT = join(import.meta.dirname, '../../..')
const page = readFileSync(join(ROOT, 'docs/subdomains.md'), 'utf8')
const block = (language: string) => new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(page)?.[1] ?? ''

test('the session prints what the page says', needs('bind'), async () => {
  const [port, dnsPort] = [await freePort(), await freePort()]
  const session = block('sh').replace('8099', String(port)).replace('5399', String(dnsPort))
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(GAMEKEEPER|NODE_TEST)_/.test(name)))
  const script = `${session}\nwait %1 || true\nrm -r "$GAMEKEEPER_DATA_DIR"\n`
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd: ROOT, env })
  assert.equal(stdout, block('text'))
  await assert.rejects(fetch(`http://127.0.0.1:${port}/readyz`), 'it was stopped')
})

test('the example of a configuration is one', () => {
  const example = block('json').replace(/\{\s*"file": "[^"]+"\s*\}/, '{"env": "TSIG"}')
  const zones = parseZones(example, { PDNS_API_KEY: 'k', TSIG: 'c2VjcmV0', CLOUDFLARE_TOKEN: 't'.repeat(40) })
  assert.deepEqual(
    zones.map(({ config }) => config.provider),
    ['embedded', 'powerdns', 'rfc2136', 'cloudflare'],
  )
})

test('every status and every reason is on the page', () => {
  for (const word of [...SUBDOMAIN_STATUSES, ...Object.keys(DNS_REASONS)]) {
    assert.match(page, new RegExp(`^\\| \`${word}\` +\\|`, 'm'))
  }
})

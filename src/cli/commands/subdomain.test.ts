import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Ran } from '../../../test/support/ran.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { ask, editZoneFile, LOCAL_DNS } from '../../../test/support/subdomains.ts'
import { runPiped } from '../../../test/support/terminal.ts'
import { EXIT } from '../exit-codes.ts'

const zone = { zone: 'play.test', provider: 'embedded', target: '203.0.113.7' }

describe('subdomains on the command line', () => {
  let service: TestService
  before(async () => {
    service = await startTestService({ env: { GAMEKEEPER_ZONES: JSON.stringify([zone]), ...LOCAL_DNS } })
    await service.createServer({ name: 'Castle', game: 'minecraft-java', port: 25566 })
  })
  after(() => service.stop())
  const run = (...args: string[]): Promise<Ran> =>
    runPiped(args, { GAMEKEEPER_URL: service.url, GAMEKEEPER_TOKEN: service.adminToken })

  test('add waits for the answer of the name servers, ls shows it, rm takes it away', async () => {
    const added = await run('subdomain', 'add', 'Castle', 'Keep')
    assert.equal(added.code, 0, added.stderr)
    assert.match(added.stdout, /Players type +keep\.play\.test/)
    assert.match(added.stdout, /active/)
    assert.equal(await ask(service.dns, 'SRV', '_minecraft._tcp.keep.play.test'), '0 0 25566 keep.play.test')
    assert.match((await run('subdomain', 'ls', 'Castle')).stdout, /keep\.play\.test .* active/)
    assert.match((await run('subdomain', 'zones', 'Castle')).stdout, /play\.test +embedded +203\.0\.113\.7 +60 s +1/)
    const removed = await run('subdomain', 'rm', 'Castle', 'keep.play.test.')
    assert.equal(removed.stdout, 'Deleted keep.play.test.\n')
    assert.equal(await ask(service.dns, 'A', 'keep.play.test'), 'NXDOMAIN')
    assert.match((await run('subdomain', 'ls', 'Castle')).stderr, /no subdomains/)
  })

  test('JSON, and exit codes for what is refused', async () => {
    const { stdout } = await run('subdomain', 'add', 'Castle', 'gate', '--zone', 'play.test', '--no-wait', '--json')
    assert.equal(JSON.parse(stdout).hostname, 'gate.play.test')
    assert.equal((await run('subdomain', 'add', 'Castle', 'gate')).code, EXIT.conflict)
    assert.equal((await run('subdomain', 'add', 'Castle', 'www')).code, EXIT.usage)
    assert.equal((await run('subdomain', 'rm', 'Castle', 'nothing')).code, EXIT.notFound)
    assert.deepEqual(JSON.parse((await run('subdomain', 'rm', 'Castle', 'gate', '--json')).stdout).deleted, true)
  })

  test('dns check says what is wrong, exits with 1, and repairs', async () => {
    await run('subdomain', 'add', 'Castle', 'moat')
    const well = await run('dns', 'check')
    assert.equal(well.code, 0)
    assert.match(well.stderr, /All is well: 1 zone, 1 subdomain\./)
    await service.halt()
    const foreign = { name: 'tower.play.test', type: 'TXT', ttl: 60, records: [{ text: 'theirs' }] } as const
    await editZoneFile(service, 'play.test', (sets) => [...sets, { ...foreign, records: [...foreign.records] }])
    await service.restart()
    const failed = await run('subdomain', 'add', 'Castle', 'tower')
    assert.equal(failed.code, EXIT.failed)
    assert.match(failed.stdout, /failed: The name has records that we did not make/)
    const { code, stdout } = await run('dns', 'check', '--repair')
    assert.equal(code, EXIT.failed)
    assert.match(stdout, /tower\.play\.test +conflict +no/)
  })
})

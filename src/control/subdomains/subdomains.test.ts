import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, beforeEach, test } from 'node:test'
import { promisify } from 'node:util'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'

const run = promisify(execFile)
const ZONES = JSON.stringify([
  { zone: 'play.test', provider: 'embedded', target: '203.0.113.7', ttl: 60, reserved: ['arena'] },
])

onBothEngines('subdomains', (engine) => {
  let service: TestService
  let serverId: string
  before(async () => {
    service = await startTestService({
      engine,
      env: { GAMEKEEPER_ZONES: ZONES, GAMEKEEPER_DNS_PORT: '0', GAMEKEEPER_DNS_HOST: '127.0.0.1' },
    })
  })
  after(() => service.stop())
  beforeEach(async () => {
    serverId = (await service.createServer({ game: 'minecraft-java', port: 25566 })).id
  })

  const at = (rest = '') => `/subdomains/${serverId}/subdomains${rest}`
  const create = (name: string, zone = 'play.test') => service.call('POST', at(), { body: { name, zone } })
  const dig = async (type: string, name: string) => {
    const { port } = service.dns ?? { port: 0 }
    const { stdout } = await run('dig', [
      '@127.0.0.1',
      '-p',
      String(port),
      type,
      name,
      '+noall',
      '+answer',
      '+comments',
    ])
    return stdout
  }
  const settled = (id: string) =>
    until(async () => {
      const { body } = await service.call('GET', at(`/${id}`))
      return body.propagatedAt ? body : undefined
    })

  test('create, answered over DNS, deleted, gone from DNS', async () => {
    const name = `castle-${engine}`
    const created = await create(name)
    assert.equal(created.status, 201)
    assert.equal(created.body.status, 'pending')
    assert.equal(created.body.connect, `${name}.play.test`)
    const active = await settled(created.body.id)
    assert.equal(active.status, 'active')
    assert.match(await dig('SRV', `_minecraft._tcp.${name}.play.test`), new RegExp(`0 0 25566 ${name}.play.test.`))
    assert.match(await dig('A', `${name}.play.test`), /203\.0\.113\.7/)
    const deleted = await service.call('DELETE', at(`/${created.body.id}`))
    assert.equal(deleted.status, 204)
    assert.match(await dig('SRV', `_minecraft._tcp.${name}.play.test`), /NXDOMAIN/)
    assert.equal((await service.call('GET', at(`/${created.body.id}`))).status, 404)
    const events = (await service.call('GET', `/servers/${serverId}/activity?event=subdomain.*`)).body.data
    assert.deepEqual(
      events.map((entry: { event: string }) => entry.event),
      ['subdomain.deleted', 'subdomain.deletion_started', 'subdomain.activated', 'subdomain.created'],
    )
  })
})

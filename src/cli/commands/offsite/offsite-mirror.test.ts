// The off-site store from the command line, against the real service.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { createWorld } from '../../../../test/support/backups.ts'
import { createMirrorPlace, type MirrorPlace, namesIn } from '../../../../test/support/mirror.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { runPiped } from '../../../../test/support/terminal.ts'
import { until } from '../../../../test/support/until.ts'

let place: MirrorPlace
let service: TestService
before(async () => {
  place = createMirrorPlace()
  service = await startTestService({ mirror: place.target })
})
after(async () => {
  await service.stop()
  place.remove()
})

const run = (...args: string[]) => runPiped(args, { GAMEKEEPER_URL: service.url, GAMEKEEPER_TOKEN: service.adminToken })

test('status says what it holds, and prune removes most of it only with --confirm', async () => {
  const world = createWorld(service)
  const server = await world.server({ a: randomBytes(50_000) })
  const { id } = await world.backup(server)
  await until(async () => /Holds +1 backups, /.test((await run('offsite', 'status')).stdout))
  const empty = await run('offsite', 'prune')
  assert.deepEqual([empty.code, empty.stdout], [0, 'There is nothing to remove.\n'])
  await service.call('DELETE', `/backups/${server}/${id}`)
  const held = await until(async () => {
    const ran = await run('offsite', 'status')
    return ran.code === 1 && ran
  })
  assert.match(held.stdout, /Surplus +\d+ B in 1 blobs, 1 backups among them/)
  assert.match((await run('offsite', 'prune')).stderr, /prune --confirm/)
  assert.deepEqual(namesIn(place.dir, 'manifests'), [id])
  assert.match((await run('doctor')).stdout, /warn +off-site store +Less than half/)
  assert.equal((await run('offsite', 'prune', '--confirm')).code, 0)
  await until(async () => namesIn(place.dir, 'manifests').length === 0)
})

test('claim takes it over, and without one the status says how to have one', async () => {
  assert.match((await run('offsite', 'claim')).stdout, /belongs to this service now/)
  await service.restart({}, null)
  const { code, stdout } = await run('offsite', 'status')
  assert.equal(code, 0)
  assert.match(stdout, /Set GAMEKEEPER_OFFSITE/)
  assert.match((await run('offsite', 'claim')).stderr, /No off-site store is configured/)
})

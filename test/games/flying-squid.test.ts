// A world is built by a real player, backed up while they play, wrecked, and rewound.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../support/backups.ts'
import { freePort } from '../support/free-port.ts'
import { joinMinecraft, type Place } from '../support/minecraft/client.ts'
import { putFlyingSquid, SQUID_VARIABLES } from '../support/minecraft/flying-squid.ts'
import { needs } from '../support/needs.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'

let service: TestService
let world: World
before(async () => {
  service = await startTestService()
  world = createWorld(service)
})
after(() => service.stop())

async function power(id: string, action: string, state: string): Promise<void> {
  const answer = await service.call('POST', `/servers/${id}/power`, { body: { action } })
  assert.equal(answer.status, 202, answer.text)
  await reach(id, state)
}

/** Fails with the console where it ends in another state. */
async function reach(id: string, state: string): Promise<void> {
  const reached = await until(async () => {
    const now = (await service.call('GET', `/servers/${id}`)).body.power.state
    return now === state || now === 'crashed' ? now : undefined
  })
  const { data } = (await service.call('GET', `/servers/${id}/console`)).body
  assert.equal(reached, state, data.map(({ text }: { text: string }) => text).join('\n'))
}

async function rewind(id: string, backupId: string): Promise<void> {
  const job = await world.restore(id, backupId, { stop: true })
  assert.equal(job.status, 'completed', JSON.stringify(job.error))
  await reach(id, 'running')
}

const CASTLE: readonly Place[] = [
  [2, 0],
  [2, 1],
  [2, 2],
  [0, 2],
]

test('what a player has built is there again after the world was wrecked and rewound', {
  ...needs('bubblewrap', 'nodejs', 'minecraft'),
}, async () => {
  const port = await freePort()
  const { id } = await service.createServer({ game: 'flying-squid', port, variables: SQUID_VARIABLES })
  putFlyingSquid(world.folder(id))
  await power(id, 'start', 'running')

  const anna = await joinMinecraft(port, 'anna')
  await anna.build(CASTLE)
  const backup = await world.backup(id)
  assert.deepEqual([backup.consistency, backup.warnings], ['quiesced', []])

  await anna.wreck(CASTLE)
  assert.deepEqual(new Set(anna.look(CASTLE)), new Set(['air']))
  await anna.leave()
  await rewind(id, backup.id)

  const again = await joinMinecraft(port, 'anna')
  assert.deepEqual(new Set(again.look(CASTLE)), new Set(['gold_block']))
  await again.leave()
  await power(id, 'stop', 'stopped')
  const { exit } = (await service.call('GET', `/servers/${id}`)).body.power
  assert.deepEqual([exit.reason, exit.code], ['requested', 0], 'by its own command, without a kill')
})

// A game that could not be started after its restore, while the service goes on.
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { needs } from '../../../../test/support/needs.ts'
import { createSavingGames } from '../../../../test/support/saving-games.ts'
import { startTestService } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'

test('a game that is paused for a restore that is over is started without a restart of the service', {
  ...needs('bubblewrap'),
}, async () => {
  mock.timers.enable({ apis: ['setInterval'] })
  const service = await startTestService()
  try {
    const games = createSavingGames(service)
    await games.addTemplate('saving')
    const id = await games.run()
    await games.power(id, 'stop')
    await games.reach(id, 'stopped')
    const note = join(games.folder(id), '..', 'game', 'paused.json')
    // As a restore leaves it whose last step could not reach the agent.
    writeFileSync(note, JSON.stringify({ jobId: 'job_over' }))
    mock.timers.tick(60_000)
    await games.reach(id, 'running')
    await until(async () => !existsSync(note))
    assert.equal((await games.stateOf(id)).state, 'running')
    await games.power(id, 'kill')
  } finally {
    mock.timers.reset()
    await service.stop()
  }
})

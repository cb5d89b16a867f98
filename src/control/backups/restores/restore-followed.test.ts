// The job of a restore as somebody follows it who waits for its end.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createWorld, SLOWEST_RATE } from '../../../../test/support/backups.ts'
import { onBothEngines } from '../../../../test/support/engines.ts'
import { openEvents } from '../../../../test/support/events.ts'
import { startTestService } from '../../../../test/support/service.ts'
import type { Job } from '../../../contract/jobs.ts'

/** As many as there are at once. */
const RESTORES = 4

onBothEngines('following a restore', (engine) => {
  test('the job of a restore can be followed until it has ended', async () => {
    await using service = await startTestService({ engine, env: { GAMEKEEPER_BACKUP_RATE: SLOWEST_RATE } })
    const world = createWorld(service)
    const begin = async (after: Record<string, Buffer>) => {
      const server = await world.server({ a: 'old' })
      const { id } = await world.backup(server)
      await world.write(server, after)
      const { body } = await service.call('POST', `/backups/${server}/${id}/restore`, { body: { mode: 'replace' } })
      return { server, job: body as Job }
    }
    // Each has a safety backup that takes for ever.
    const endless: { server: string; job: Job }[] = []
    while (endless.length < RESTORES) endless.push(await begin({ big: randomBytes(20_000_000) }))
    const { server, job } = await begin({})
    const path = `/servers/${server}/jobs/${job.id}`
    const states: Job[] = []
    const stream = await openEvents(`${service.url}/v1/game${path}`, service.adminToken)
    for (let event = await stream.next(); event; event = await stream.next()) {
      assert.equal(event.event, 'job')
      states.push(event.data)
      if (states.length > 1) continue
      assert.equal(event.data.status, 'queued')
      await service.call('DELETE', `/servers/${endless[0]?.server}/jobs/${endless[0]?.job.id}`)
    }
    assert.ok(states.length >= 2, JSON.stringify(states))
    assert.deepEqual(states.at(-1), (await service.call('GET', path)).body)
    assert.equal(states.at(-1)?.status, 'completed')
    const unlike = await fetch(`${service.url}/v1/game${path}`, {
      headers: { accept: 'text/html', authorization: `Bearer ${service.adminToken}` },
    })
    assert.equal(unlike.status, 406)
    const none = await openEvents(`${service.url}/v1/game/servers/${server}/jobs/job_none`, service.adminToken)
    assert.equal(none.status, 404)
  })
})

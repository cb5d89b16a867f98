// A start that waits for an installation, through the front door, with a game that is real enough.
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../test/support/backups.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { needs } from '../../../test/support/needs.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'

const WAITING = 'touch begun; until [ -e go ]; do sleep 0.05; done; [ ! -e broken ]'
const TEMPLATE = {
  ...{ format: 1, id: 'slow', name: 'Slow', runtimes: ['process'], stop: [{ command: 'stop', timeoutSeconds: 5 }] },
  start: { args: ['/bin/sh', '-c', 'echo Up; while read -r line; do [ "$line" = stop ] && exit 0; done'] },
  ready: ['Up'],
  install: [{ do: 'run', args: ['/bin/sh', '-c', WAITING] }],
}

onBothEngines('a start that waits for an installation', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
    await service.call('POST', '/templates', { body: TEMPLATE })
  })
  after(() => service.stop())

  const put = (id: string, name: string) => writeFileSync(join(world.folder(id), name), '')
  const power = (id: string, action: string) => service.call('POST', `/servers/${id}/power`, { body: { action } })
  const stateOf = async (id: string) => (await service.call('GET', `/servers/${id}`)).body.power.state
  const jobsOf = async (id: string): Promise<Record<string, string>> => {
    const { data } = (await service.call('GET', `/servers/${id}/jobs`)).body
    return Object.fromEntries(data.map(({ kind, status }: { kind: string; status: string }) => [kind, status]))
  }

  async function begin(): Promise<string> {
    const { id } = await service.createServer({ game: 'slow' })
    const asked = await service.call('POST', `/servers/${id}/install`, { body: { start: true } })
    assert.equal(asked.status, 202, asked.text)
    await until(async () => existsSync(join(world.folder(id), 'begun')))
    assert.deepEqual(await jobsOf(id), { install: 'running', start: 'queued' })
    return id
  }

  test(
    'A start that waits for an installation outlives whoever asked for it and restarts of the service.',
    needs('bubblewrap'),
    async () => {
      const id = await begin()
      await service.restart()
      assert.equal((await jobsOf(id)).start, 'queued')
      put(id, 'go')
      await until(async () => (await stateOf(id)) === 'running')
      await until(async () => (await jobsOf(id)).start === 'completed')
      // That a game runs is told by the agent, and has its entry soon after.
      const events = await until(async () => {
        const { data } = (await service.call('GET', `/servers/${id}/activity`)).body
        const all: string[] = data.map(({ event }: { event: string }) => event).reverse()
        return all.includes('game.running') && all.filter((event) => !event.startsWith('player.'))
      })
      assert.deepEqual(events, ['server.created', 'job.started', 'server.installed', 'power.requested', 'game.running'])
      await power(id, 'kill')
    },
  )

  test(
    'It is cancelled by a stop or a kill of the game, by an installation that fails or is cancelled, and with its server.',
    needs('bubblewrap'),
    async () => {
      // As many as are installed at once.
      const [stopped = '', killed = '', failed = '', cancelled = ''] = await Promise.all(
        Array.from({ length: 4 }, begin),
      )
      for (const [id, action] of [
        [stopped, 'stop'],
        [killed, 'kill'],
      ] as const) {
        assert.equal((await power(id, action)).status, 200)
        assert.deepEqual(await jobsOf(id), { install: 'running', start: 'cancelled' })
        put(id, 'go')
      }
      put(failed, 'broken')
      put(failed, 'go')
      const { data } = (await service.call('GET', `/servers/${cancelled}/jobs`)).body
      const install = data.find(({ kind }: { kind: string }) => kind === 'install')
      assert.equal((await service.call('DELETE', `/servers/${cancelled}/jobs/${install.id}`)).status, 202)
      const deleted = await begin()
      const removal = await service.call('DELETE', `/servers/${deleted}`, { body: { name: 'Castle' } })
      assert.equal(removal.status, 202, removal.text)
      await world.jobEnded(deleted, removal.body.id)
      for (const [id, end] of [
        [stopped, 'completed'],
        [killed, 'completed'],
        [failed, 'failed'],
        [cancelled, 'cancelled'],
        [deleted, 'cancelled'],
      ] as const) {
        await until(async () => (await jobsOf(id)).install === end)
        assert.equal((await jobsOf(id)).start, 'cancelled', `where it has ${end}`)
        assert.equal(await stateOf(id), 'stopped')
      }
    },
  )

  test(
    'whoever may install and not start is refused, and one that cannot start says why',
    needs('bubblewrap'),
    async () => {
      const { id } = await service.createServer({ game: 'slow' })
      const { token } = await service.mint(['servers:write'], [id])
      const refused = await service.call('POST', `/servers/${id}/install`, { token, body: { start: true } })
      assert.deepEqual([refused.status, refused.body.code], [403, 'forbidden'])
      assert.deepEqual(await jobsOf(id), {})
      await service.call('POST', '/templates', {
        body: {
          ...TEMPLATE,
          id: 'needy',
          install: [],
          requires: [{ kind: 'file', path: '/server.jar', hint: 'Upload it.' }],
        },
      })
      const { id: bare } = await service.createServer({ game: 'needy' })
      await service.call('POST', `/servers/${bare}/install`, { body: { start: true } })
      await until(async () => (await jobsOf(bare)).start === 'failed')
      assert.equal((await jobsOf(bare)).install, 'completed')
    },
  )
})

// Power and console through the front door, with a real game.
import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../test/support/backups.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { openEvents } from '../../../test/support/events.ts'
import { gameFile } from '../../../test/support/games.ts'
import { needs } from '../../../test/support/needs.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'

onBothEngines('power and console', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  async function createGame(body: object = {}): Promise<string> {
    const { id } = await service.createServer(body)
    copyFileSync(gameFile('plain'), join(world.folder(id), 'start'))
    return id
  }
  const power = (id: string, action: string, options: object = {}) =>
    service.call('POST', `/servers/${id}/power`, { body: { action }, ...options })
  const stateOf = async (id: string) => (await service.call('GET', `/servers/${id}`)).body.power
  const reach = (id: string, state: string) => until(async () => (await stateOf(id)).state === state)
  const eventsOf = async (id: string) =>
    (await service.call('GET', `/servers/${id}/activity`)).body.data
      .map(({ event, actor, properties }: { event: string; actor: { name: string }; properties: object }) => ({
        ...{ event, by: actor.name, properties },
      }))
      .reverse()

  test(
    'A server is started, obeys its console, and stops; its activity says who did it.',
    needs('bubblewrap'),
    async () => {
      const id = await createGame()
      assert.deepEqual(await stateOf(id), { state: 'stopped', since: null, step: null, exit: null })
      const started = await power(id, 'start')
      assert.equal(started.status, 202, started.text)
      assert.equal(started.body.power.state, 'running')
      assert.equal(started.body.runtime.isolation, 'bubblewrap')
      assert.equal((await power(id, 'start')).status, 200, 'it runs already')
      assert.equal((await service.call('POST', `/servers/${id}/console`, { body: { command: 'hello' } })).status, 202)
      const said = await until(async () => {
        const { body } = await service.call('GET', `/servers/${id}/console?q=YOU%20SAID`)
        return body.data[0]
      })
      assert.deepEqual([said.source, said.text], ['stdout', 'You said: hello'])
      assert.equal((await power(id, 'stop')).status, 202)
      await reach(id, 'stopped')
      const { exit } = await stateOf(id)
      assert.deepEqual([exit.reason, exit.code, exit.signal], ['requested', 0, null])
      await until(async () => (await eventsOf(id)).some(({ event }: { event: string }) => event === 'game.stopped'))
      const { name } = (await service.call('GET', '/token')).body
      assert.deepEqual(
        (await eventsOf(id)).map(({ event, by }: { event: string; by: string }) => [event, by]).slice(1),
        [
          ['power.requested', name],
          ['game.running', 'Gamekeeper'],
          ['console.command_sent', name],
          ['power.requested', name],
          ['game.stopped', 'Gamekeeper'],
        ],
      )
    },
  )

  test(
    'A page of the console ends where the next begins, and the stream resumes by the number of a line.',
    needs('bubblewrap'),
    async () => {
      const id = await createGame()
      await power(id, 'start')
      for (const command of ['one', 'two', 'three'])
        await service.call('POST', `/servers/${id}/console`, { body: { command } })
      await until(
        async () => (await service.call('GET', `/servers/${id}/console?q=said:%20three`)).body.data.length > 0,
      )
      const whole = (await service.call('GET', `/servers/${id}/console`)).body.data as { line: number; text: string }[]
      const first = (await service.call('GET', `/servers/${id}/console?limit=4`)).body
      const rest = (await service.call('GET', `/servers/${id}/console?before=${first.nextCursor}`)).body
      assert.deepEqual([...first.data, ...rest.data], whole)
      assert.equal(rest.nextCursor, null)
      const byCursor = (await service.call('GET', `/servers/${id}/console?cursor=${first.nextCursor}`)).body
      assert.deepEqual(byCursor, rest)
      for (const query of ['cursor=4&before=4', 'cursor=0', 'cursor=x']) {
        const { code, errors } = (await service.call('GET', `/servers/${id}/console?${query}`)).body
        assert.deepEqual([code, errors[0].path], ['invalid_request', '/cursor'], query)
      }
      const { token, id: tokenId } = await service.mint(['console:read'], [id])
      const url = `${service.url}/v1/game/servers/${id}/console`
      const stream = await openEvents(url, token, { 'last-event-id': String(whole.at(-3)?.line) })
      for (const { line, text } of whole.toReversed().slice(3)) {
        const event = await stream.next()
        assert.deepEqual([event?.id, event?.event, event?.data.text], [String(line), 'line', text])
      }
      await service.call('POST', `/servers/${id}/console`, { body: { command: 'live' } })
      assert.equal((await stream.next())?.data.text, 'live')
      const next = (async () => {
        let event = await stream.next()
        while (event) event = await stream.next()
        return event
      })()
      await service.call('DELETE', `/tokens/${tokenId}`)
      assert.equal(await next, undefined, 'a revoked token ends its stream')
      await power(id, 'kill')
    },
  )

  test('A token with console:read alone can neither send a command nor start anything.', async () => {
    const id = await createGame()
    const { token } = await service.mint(['console:read'], [id])
    assert.equal((await service.call('GET', `/servers/${id}/console`, { token })).status, 200)
    for (const [path, body] of [
      ['console', { command: 'op me' }],
      ['power', { action: 'start' }],
    ] as const) {
      const refused = await service.call('POST', `/servers/${id}/${path}`, { token, body })
      assert.deepEqual([refused.status, refused.body.code], [403, 'forbidden'])
    }
    const other = await service.mint(['*'], [id])
    const unseen = (await service.createServer()).id
    for (const path of ['console', 'power'])
      assert.equal(
        (await service.call('POST', `/servers/${unseen}/${path}`, { token: other.token, body: {} })).status,
        404,
      )
    assert.equal((await stateOf(id)).state, 'stopped')
  })

  test('What keeps a game from starting is answered with a code and what to do.', needs('bubblewrap'), async () => {
    const { id: empty } = await service.createServer()
    const missing = await power(empty, 'start')
    assert.deepEqual([missing.status, missing.body.code], [409, 'not_startable'])
    assert.match(missing.body.detail, /The file \/start is missing\. Upload it/)
    await using taken = createServer().listen(0, '0.0.0.0')
    await new Promise((resolve) => taken.once('listening', resolve))
    const id = await createGame({ port: (taken.address() as { port: number }).port })
    assert.deepEqual((await power(id, 'start')).body.code, 'port_taken')
    const silent = await service.call('POST', `/servers/${id}/console`, { body: { command: 'x' } })
    assert.deepEqual([silent.status, silent.body.code], [409, 'server_not_running'])
    assert.deepEqual(
      (await eventsOf(id)).map(({ event }: { event: string }) => event),
      ['server.created'],
      'nothing has happened',
    )
    const long = await service.call('POST', `/servers/${id}/console`, { body: { command: 'ü'.repeat(2049) } })
    assert.deepEqual([long.status, long.body.errors[0].path], [400, '/command'])
    for (const command of ['', 'two\nlines', '\u0000'])
      assert.equal((await service.call('POST', `/servers/${id}/console`, { body: { command } })).status, 400)
  })

  test(
    'A server that runs is not deleted (server_running), and restored only with "stop": true',
    needs('bubblewrap'),
    async () => {
      const id = await createGame()
      const before = await world.backup(id)
      assert.equal(before.consistency, 'offline')
      await power(id, 'start')
      const restore = await service.call('POST', `/backups/${id}/${before.id}/restore`, { body: { mode: 'replace' } })
      assert.deepEqual([restore.status, restore.body.code], [409, 'server_running'])
      const deletion = await service.call('DELETE', `/servers/${id}`, { body: { name: 'Castle' } })
      assert.deepEqual([deletion.status, deletion.body.code], [409, 'server_running'])
      assert.equal((await world.backup(id)).consistency, 'live')
      await power(id, 'stop')
      await reach(id, 'stopped')
      await world.restore(id, before.id, { mode: 'replace' })
      assert.equal((await power(id, 'start')).status, 202, 'it starts from what was restored')
      await power(id, 'kill')
      await reach(id, 'stopped')
      const { body: job } = await service.call('DELETE', `/servers/${id}`, { body: { name: 'Castle' } })
      await world.jobEnded(id, job.id)
      assert.equal((await power(id, 'start')).body.code, 'server_deleted')
    },
  )

  test('The same Idempotency-Key starts once, and gets the same answer.', needs('bubblewrap'), async () => {
    const id = await createGame()
    const headers = { 'idempotency-key': `start-${engine}` }
    const first = await power(id, 'restart', { headers })
    const second = await power(id, 'restart', { headers })
    assert.deepEqual([first.status, second.status, second.headers.get('idempotency-replayed')], [202, 202, 'true'])
    assert.deepEqual(second.body, first.body)
    const { body } = await service.call('GET', `/servers/${id}/console?q=Started.`)
    assert.equal(body.data.length, 1)
    await power(id, 'kill')
  })

  test(
    'A game runs on while the service restarts, and its state is right afterwards.',
    needs('bubblewrap'),
    async () => {
      const [running, ending] = [await createGame(), await createGame()]
      for (const id of [running, ending]) await power(id, 'start')
      await service.call('POST', `/servers/${ending}/console`, { body: { command: 'quit' } })
      await service.restart()
      await reach(ending, 'stopped')
      assert.equal((await stateOf(ending)).exit.reason, 'in_game')
      assert.equal((await stateOf(running)).state, 'running')
      assert.equal((await service.call('POST', `/servers/${running}/console`, { body: { command: 'hi' } })).status, 202)
      await power(running, 'stop')
      await reach(running, 'stopped')
    },
  )
})

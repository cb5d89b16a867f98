// Stats, players and metrics of servers through the front door.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { createWorld, type World } from '../../../test/support/backups.ts'
import { openEvents } from '../../../test/support/events.ts'
import { needs } from '../../../test/support/needs.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { writeStats } from '../../../test/support/stats.ts'
import { until } from '../../../test/support/until.ts'

suite('stats and players', () => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService()
    world = createWorld(service)
  })
  after(() => service.stop())

  const measure = (serverId: string, points: number) => writeStats(join(world.folder(serverId), '..', 'game'), points)

  test('a series is read since a time, and followed from a point on; revoking the token ends the stream', async () => {
    const { id } = await service.createServer()
    assert.deepEqual((await service.call('GET', `/servers/${id}/stats`)).body.data, [])
    const times = measure(id, 5)
    const { body } = await service.call('GET', `/servers/${id}/stats`)
    assert.equal(body.step, 10)
    assert.deepEqual(
      body.data.map(({ at }: { at: string }) => Date.parse(at)),
      times,
    )
    assert.deepEqual(
      { ...body.data[0], at: null },
      {
        ...{ at: null, cpuPercent: 12.35, memoryBytes: 1e9, diskBytes: null, players: 2 },
        ...{ networkReceivedBytesPerSecond: null, networkSentBytesPerSecond: null },
      },
    )
    const since = encodeURIComponent(new Date(times[3] as number).toISOString())
    const later = (await service.call('GET', `/servers/${id}/stats?since=${since}&step=20`)).body
    assert.deepEqual([later.step, later.data.length <= 2], [20, true])
    for (const query of ['step=5', 'step=x', 'since=yesterday'])
      assert.equal((await service.call('GET', `/servers/${id}/stats?${query}`)).status, 400, query)
    const reader = await service.mint(['servers:read'], [id])
    const url = `${service.url}/v1/game/servers/${id}/stats`
    const stream = await openEvents(url, reader.token, { 'last-event-id': String(times[2]) })
    for (const at of times.slice(3)) {
      const event = await stream.next()
      assert.deepEqual([event?.id, event?.event, Date.parse(event?.data.at)], [String(at), 'stats', at])
    }
    await service.call('DELETE', `/tokens/${reader.id}`)
    assert.equal(await stream.next(), undefined)
    const refused = await service.call('GET', `/servers/${id}/stats`, {
      headers: { accept: 'text/event-stream', 'last-event-id': 'x' },
    })
    assert.equal(refused.status, 400)
  })

  test('a server that the token cannot see has neither stats nor players', async () => {
    const [{ id }, other] = [await service.createServer(), await service.createServer()]
    const { token } = await service.mint(['servers:read'], [other.id])
    for (const what of ['stats', 'players']) {
      assert.equal((await service.call('GET', `/servers/${id}/${what}`, { token })).status, 404)
      assert.equal((await service.call('GET', `/servers/${other.id}/${what}`, { token })).status, 200)
    }
    const narrow = await service.mint(['files:read'], [id])
    for (const what of ['stats', 'players'])
      assert.equal((await service.call('GET', `/servers/${id}/${what}`, { token: narrow.token })).status, 403)
  })

  test('joins and leaves are in the activity, and who is online is counted', needs('bubblewrap'), async () => {
    const template = {
      ...{ format: 1, id: 'chatty', name: 'Chatty', runtimes: ['process'], start: { args: ['./start'] } },
      ...{ ready: ['Done'], stop: [{ command: 'stop', timeoutSeconds: 10 }] },
      ...{ joins: ['<{player}> joins'], leaves: ['<{player}> leaves'] },
    }
    assert.equal((await service.call('POST', '/templates', { body: template })).status, 201)
    const { id } = await service.createServer({ game: 'chatty' })
    const script = '#!/bin/sh\necho Done\nwhile read -r line; do [ "$line" = stop ] && exit 0; echo "$line"; done\n'
    writeFileSync(join(world.folder(id), 'start'), script, { mode: 0o755 })
    const players = async () => (await service.call('GET', `/servers/${id}/players`)).body
    assert.deepEqual([(await players()).reason, (await players()).online], ['not_running', null])
    const say = (command: string) => service.call('POST', `/servers/${id}/console`, { body: { command } })
    const power = (action: string) => service.call('POST', `/servers/${id}/power`, { body: { action } })
    assert.equal((await power('start')).status, 202)
    await until(async () => (await players()).source === 'console')
    for (const line of ['<anna> joins', '<ben> joins', '<anna> leaves']) assert.equal((await say(line)).status, 202)
    const eventsOf = async () =>
      (await service.call('GET', `/servers/${id}/activity?event=player.*`)).body.data
        .reverse()
        .map((entry: { event: string; properties: { player: string }; actor: { type: string } }) => ({
          ...{ event: entry.event, player: entry.properties.player, by: entry.actor.type },
        }))
    await until(async () => (await eventsOf()).length === 3)
    await service.restart()
    assert.equal((await say('<carl> joins')).status, 202)
    await until(async () => (await eventsOf()).length === 4)
    assert.deepEqual(await eventsOf(), [
      { event: 'player.joined', player: 'anna', by: 'system' },
      { event: 'player.joined', player: 'ben', by: 'system' },
      { event: 'player.left', player: 'anna', by: 'system' },
      { event: 'player.joined', player: 'carl', by: 'system' },
    ])
    const now = await players()
    assert.deepEqual([now.online, now.players, now.reason], [2, [{ name: 'ben' }, { name: 'carl' }], null])
    await power('kill')
  })

  test('Metrics of single servers need a token with `*`, also from the machine itself: games reach loopback.', async () => {
    const metrics = async (token: string | null) => {
      const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
      const reply = await fetch(`${service.url}/metrics`, { headers })
      return { status: reply.status, text: await reply.text() }
    }
    const open = await metrics(null)
    assert.equal(open.status, 200)
    assert.match(open.text, /gamekeeper_http_answers_total/)
    assert.doesNotMatch(open.text, /gamekeeper_game/)
    const all = await metrics(service.adminToken)
    assert.match(all.text, /^gamekeeper_games_running \d+$/m)
    assert.match(all.text, /gamekeeper_http_answers_total/)
    assert.match(all.text, /# TYPE gamekeeper_game_cpu_seconds_total counter/)
    const { token } = await service.mint(['servers:read', 'activity:read'])
    assert.equal((await metrics(token)).status, 403)
    assert.equal((await metrics('gk_nobody')).status, 401)
  })
})

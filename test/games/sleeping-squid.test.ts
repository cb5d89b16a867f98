// A real Minecraft server that sleeps, and real clients that look at it, wake it and play.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualTimers, openGames } from '../../src/agent/games/games.testing.ts'
import { flyingSquid } from '../../src/agent/games/templates/flying-squid.ts'
import { resolveLaunch } from '../../src/templates/resolve.ts'
import { freePort } from '../support/free-port.ts'
import { joinMinecraft, lookAt } from '../support/minecraft/client.ts'
import { putFlyingSquid, SQUID_VARIABLES } from '../support/minecraft/flying-squid.ts'
import { needs } from '../support/needs.ts'
import { until } from '../support/until.ts'

const S = 'srv_castle'
const MINUTE_MS = 60_000

test('a player who joins a Minecraft server that sleeps is told that it wakes up, and can join then', {
  ...needs('bubblewrap', 'nodejs', 'minecraft'),
}, async () => {
  const timers = createManualTimers()
  const port = await freePort()
  await using harness = await openGames({
    timers,
    sleep: { afterMinutes: 5 },
    occupancy: () => ({ online: 0, emptySince: 0 }),
  })
  await harness.create(S, 'plain')
  putFlyingSquid(harness.filesOf(S))
  const server = { id: S, name: 'Castle', port, memoryBytes: null }
  await harness.power(S, 'start', resolveLaunch(flyingSquid, SQUID_VARIABLES, server))
  await harness.reach(S, 'running')
  timers.advance(5 * MINUTE_MS)
  await harness.reach(S, 'sleeping')

  const status = await until(() => lookAt(port))
  assert.deepEqual([status.description.text, status.players.online], ['Asleep. Join to wake it up.', 0])
  assert.equal((await harness.games.read({ serverId: S })).power.state, 'sleeping')

  await assert.rejects(joinMinecraft(port, 'anna'), /wakes up now\. Join again in a moment/)
  await harness.reach(S, 'running')
  const anna = await joinMinecraft(port, 'anna')
  await anna.leave()
  assert.deepEqual(
    harness.facts.filter(({ kind }) => kind === 'game.woken').map(({ properties }) => properties.player),
    ['anna'],
  )
})

// A world of the real Luanti: changed by the running game, backed up meanwhile, wrecked, rewound, and rehearsed.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../support/backups.ts'
import { freePort } from '../support/free-port.ts'
import { needs } from '../support/needs.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'

/**
 * What a player would do. It obeys the file `order` in the folder of the world, `<word> <node>`: `place` puts the node at one
 * place of the map, and any order is answered with what is there.
 */
const MOD = `
local PLACE = {x = 5, y = 60, z = 5}
local done = ""
local function look(word)
  minetest.log("action", "BUILDER " .. word .. " " .. minetest.get_node(PLACE).name)
end
local function obey(order)
  local word, node = order:match("^(%S+) (%S+)")
  minetest.emerge_area(PLACE, PLACE, function(_, _, left)
    if left > 0 then return end
    if node ~= "-" then minetest.set_node(PLACE, {name = node}) end
    look(word)
  end)
end
minetest.register_node("builder:block", {description = "Built by the test"})
minetest.register_node("builder:rubble", {description = "Left by vandals"})
local function check()
  local file = io.open(minetest.get_worldpath() .. "/order")
  local order = file and file:read("*a") or ""
  if file then file:close() end
  if order ~= done and order ~= "" then done = order; obey(order) end
  minetest.after(0.1, check)
end
minetest.after(0.1, check)
`

const WORLD = [
  'gameid = minetest',
  ...['', 'player_', 'auth_', 'mod_storage_'].map((of) => `${of}backend = sqlite3`),
].join('\n')

let service: TestService
let world: World
before(async () => {
  service = await startTestService()
  world = createWorld(service)
})
after(() => service.stop())

const power = async (id: string, action: string) =>
  assert.equal((await service.call('POST', `/servers/${id}/power`, { body: { action } })).status, 202)
const reach = (id: string, state: string) =>
  until(async () => (await service.call('GET', `/servers/${id}`)).body.power.state === state)

/** What the game finds at the place, once it has obeyed. */
async function order(id: string, word: string, node = '-'): Promise<string> {
  const body = Buffer.from(`${word} ${node}`)
  const written = await service.call('PUT', `/files/${id}/content?path=/world/order`, { body })
  assert.ok(written.status < 300, written.text)
  return until(async () => {
    const { data } = (await service.call('GET', `/servers/${id}/console?q=BUILDER%20${word}`)).body
    return data[0]?.text.split(' ').at(-1)
  })
}

test('Luanti: what was built is backed up while the game runs, wrecked, and found again after a restore with `stop: true`', {
  ...needs('bubblewrap', 'luanti'),
}, async () => {
  const { id } = await service.createServer({ game: 'luanti', port: await freePort() })
  await world.write(id, { 'world/worldmods/builder/init.lua': MOD, 'world/world.mt': WORLD })
  await power(id, 'start')
  await reach(id, 'running')
  assert.equal(await order(id, 'built', 'builder:block'), 'builder:block')
  // The map is saved every few seconds.
  await until(async () => (await service.call('GET', `/files/${id}?path=/world`)).body.data.some(isSaved))
  await power(id, 'restart')
  await until(async () => (await service.call('GET', `/servers/${id}/console?q=listening`)).body.data.length === 2)
  const backup = await world.backup(id)
  assert.equal(backup.consistency, 'live')
  assert.match(backup.warnings.join('\n'), /no commands that hold its world still/)

  assert.equal(await order(id, 'wrecked', 'builder:rubble'), 'builder:rubble')
  const job = await world.restore(id, backup.id, { stop: true })
  assert.equal(job.status, 'completed', JSON.stringify(job.error))
  await reach(id, 'running')
  assert.equal(await order(id, 'looked'), 'builder:block')

  const rehearse = async (backupId: string) => {
    const { body } = await service.call('POST', `/backups/${id}/${backupId}/rehearse`, { body: { timeoutSeconds: 60 } })
    const { result, error } = await world.jobEnded(id, body.id)
    assert.equal(error, null)
    return (result as { outcome: string }).outcome
  }
  assert.equal(await rehearse(backup.id), 'passed')
  await power(id, 'stop')
  await reach(id, 'stopped')
  await world.write(id, { 'world/env_meta.txt': 'game_time = 12\ntorn in the mid' })
  const wrecked = await world.backup(id)
  assert.equal(await rehearse(wrecked.id), 'failed')
  const { reason, log } = (await service.call('GET', `/backups/${id}/${wrecked.id}/rehearsal`)).body
  assert.match(reason, /ended before it was up/)
  assert.match(log.join('\n'), /A fatal error occurred/)
})

const isSaved = ({ name }: { name: string }) => name === 'map.sqlite'

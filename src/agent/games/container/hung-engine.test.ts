// An engine that takes connections and does not answer.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { launchOf } from '../../../../test/support/games.ts'
import { needs } from '../../../../test/support/needs.ts'
import { openGames } from '../games.testing.ts'
import { bootId } from '../process-identity.ts'

const [S, T] = ['srv_castle', 'srv_keep']
const CONTAINER = { image: 'game', directory: '/data', capabilities: [], installer: null }

async function hungEngine() {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-hung-'))
  const socket = join(folder, 'engine.sock')
  const clients = new Set<Socket>()
  const server = createServer((client) => void clients.add(client)).listen(socket)
  await once(server, 'listening')
  return {
    socket,
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.destroy()
      server.close()
      rmSync(folder, { recursive: true })
    },
  }
}

suite('a hung engine', needs('bubblewrap'), () => {
  test('keeps neither the service nor games that are processes from going on, and its own count as running', {
    timeout: 120_000,
  }, async () => {
    await using engine = await hungEngine()
    await using harness = await openGames({ options: { containerSocket: engine.socket } })
    for (const serverId of [S, T]) await harness.create(serverId, 'plain')
    await harness.power(T, 'start')
    await harness.reach(T, 'running')
    // As a game in a container was left by the last service.
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    await harness.power(S, 'kill')
    await harness.reach(S, 'stopped')
    harness.edit(S, (record) => ({
      ...record,
      ...{ launch: launchOf({ container: CONTAINER }), runId: 'run_left', isWanted: true, asked: null },
      power: { ...record.power, state: 'running' },
    }))
    const record = { bootId: bootId(), ready: [], stopsByItself: [] }
    writeFileSync(join(harness.dataDir, 'servers', S, 'game', 'container-run_left.json'), JSON.stringify(record))

    await harness.restart()
    assert.ok(harness.games.isRunning(S), 'it may well run, so nothing touches its files')
    await harness.games.sendCommand({ serverId: T, command: 'hello' })
    assert.equal(await harness.power(T, 'kill'), true)
    await harness.reach(T, 'stopped')

    // As after the machine was down.
    for (const serverId of [S, T])
      harness.edit(serverId, (left) => ({
        ...{ ...left, runId: null, bootId: 'another', isWanted: true },
        power: { ...left.power, state: 'running' },
      }))
    await harness.restart()
    await harness.reach(T, 'running')

    harness.edit(S, (left) => ({ ...left, runId: null, isWanted: false, power: { ...left.power, state: 'stopped' } }))
    await harness.restart()
  })
})

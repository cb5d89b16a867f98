// Sleep and wake, with real games, real ports and a clock that the test moves.
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { suite, test } from 'node:test'
import { freePort } from '../../../../test/support/free-port.ts'
import { needs } from '../../../../test/support/needs.ts'
import { until } from '../../../../test/support/until.ts'
import { SLEEP, SLEEP_DOOR } from '../../../contract/fixed-limits.ts'
import type { Launch } from '../../../contract/games/launch.ts'
import { createManualTimers, type GamesHarness, openGames } from '../games.testing.ts'
import { ask, handshake, jsonOf, loginStart, open, PING, STATUS_REQUEST } from './minecraft-client.testing.ts'
import { type Occupancy, UNKNOWN } from './sleep.ts'
import { isQuestion } from './udp-door.ts'

const S = 'srv_castle'
const MINUTES = 10
const JOIN = [handshake(2), loginStart('anna')]

interface Setting {
  harness: GamesHarness
  timers: ReturnType<typeof createManualTimers>
  port: number
  launch: Partial<Launch>
  /** What tells whether somebody plays says this. */
  seen: { occupancy: Occupancy }
}

async function openSetting(protocol: 'tcp' | 'udp' = 'tcp') {
  const timers = createManualTimers()
  const seen: Setting['seen'] = { occupancy: { online: 0, emptySince: 0 } }
  const harness = await openGames({
    timers,
    sleep: { afterMinutes: MINUTES },
    occupancy: () => seen.occupancy,
  })
  const port = await freePort()
  const launch: Partial<Launch> = {
    ports: [{ name: 'game', port, protocol }],
    query: protocol === 'tcp' ? { type: 'minecraft', port: 'game' } : null,
  }
  await harness.create(S, 'plain')
  await harness.power(S, 'start', launch)
  await harness.reach(S, 'running')
  return {
    ...{ harness, timers, port, launch, seen },
    [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose](),
  }
}

const powerOf = async ({ harness }: Pick<Setting, 'harness'>) => (await harness.games.read({ serverId: S })).power
const kinds = ({ harness }: Pick<Setting, 'harness'>) => harness.facts.map(({ kind }) => kind)

/** Looks once, as it does by itself every few seconds. */
async function look({ timers }: Setting): Promise<void> {
  timers.advance(SLEEP.lookEveryMs)
  await new Promise(setImmediate)
}

async function fallAsleep(setting: Setting): Promise<void> {
  setting.timers.advance(MINUTES * 60_000)
  await setting.harness.reach(S, 'sleeping')
  await until(() => isOpen(setting.port))
}

async function isOpen(port: number): Promise<boolean> {
  try {
    const socket = await open(port)
    socket.destroy()
    return true
  } catch {
    return false
  }
}

suite('sleep', needs('bubblewrap'), () => {
  test('a game that nobody has played for that long sleeps, and a player who joins wakes it and is told', async () => {
    await using setting = await openSetting()
    const { harness, port } = setting
    await look(setting)
    assert.equal((await powerOf(setting)).state, 'running', 'not yet')
    await fallAsleep(setting)
    assert.deepEqual([(await powerOf(setting)).exit?.reason, harness.games.isRunning(S)], ['requested', false])

    const status = await ask(port, [handshake(1), STATUS_REQUEST, PING])
    assert.match(jsonOf(status).description.text, /Asleep\. Join to wake it up/)
    assert.equal((await powerOf(setting)).state, 'sleeping', 'to look at it in a list does not wake it')

    assert.match(jsonOf(await ask(port, JOIN, 1)).text, /wakes up now\. Join again in a moment/)
    await harness.reach(S, 'running')
    assert.equal(await isOpen(port), false, 'the port is the game’s')
    assert.deepEqual(kinds(setting), ['power.requested', 'game.running', 'game.slept', 'game.woken', 'game.running'])
    assert.deepEqual(harness.facts[3]?.properties, { address: '127.0.0.1', player: 'anna' })
    assert.deepEqual(harness.errors, [])

    // Counted from the beginning again.
    await look(setting)
    assert.equal((await powerOf(setting)).state, 'running')
    await fallAsleep(setting)
  })

  test('As long as it is not known whether somebody plays, a game is not stopped', async () => {
    await using setting = await openSetting()
    for (const occupancy of [{ online: 1, emptySince: null }, UNKNOWN]) {
      setting.seen.occupancy = occupancy
      setting.timers.advance(MINUTES * 60_000)
      await look(setting)
      assert.equal((await powerOf(setting)).state, 'running')
    }
    setting.seen.occupancy = { online: 0, emptySince: setting.timers.now() }
    setting.timers.advance(MINUTES * 60_000 - 1)
    await look({ ...setting, timers: { ...setting.timers, advance: () => setting.timers.advance(0) } })
    assert.equal((await powerOf(setting)).state, 'running', 'a moment before')
    await look(setting)
    await setting.harness.reach(S, 'sleeping')
  })

  test('sleep is off by default, and can be turned off and on while the game runs', async () => {
    await using setting = await openSetting()
    const { games } = setting.harness
    await games.setSleep({ serverId: S, sleep: null })
    setting.timers.advance(MINUTES * 60_000)
    await look(setting)
    assert.equal((await powerOf(setting)).state, 'running')
    await games.setSleep({ serverId: S, sleep: { afterMinutes: 1 } })
    await look(setting)
    await setting.harness.reach(S, 'sleeping')
  })

  test('stop and kill of a game that sleeps leave it stopped, and nothing wakes it', async () => {
    await using setting = await openSetting()
    for (const action of ['stop', 'kill'] as const) {
      await fallAsleep(setting)
      assert.equal(await setting.harness.power(S, action), true)
      assert.equal((await powerOf(setting)).state, 'stopped')
      await until(async () => !(await isOpen(setting.port)))
      await setting.harness.restart()
      assert.equal((await powerOf(setting)).state, 'stopped')
      await setting.harness.power(S, 'start', setting.launch)
      await setting.harness.reach(S, 'running')
    }
    await fallAsleep(setting)
    assert.equal(await setting.harness.power(S, 'start', setting.launch), true, 'a start is a start')
    await setting.harness.reach(S, 'running')
  })

  test('After a restart of the service or of the machine it still sleeps', async () => {
    await using setting = await openSetting()
    await fallAsleep(setting)
    await setting.harness.restart()
    assert.equal((await powerOf(setting)).state, 'sleeping')
    await until(() => isOpen(setting.port))
    setting.harness.edit(S, (record) => ({ ...record, bootId: 'another' }))
    assert.equal(await isOpen(setting.port), false, 'nobody answers while the service is away')
    await setting.harness.restart()
    await until(() => isOpen(setting.port))
    await ask(setting.port, JOIN, 1)
    await setting.harness.reach(S, 'running')
    await setting.harness.restart()
    await fallAsleep(setting)
  })

  test('a port that another program has taken is said, and taken back when it is free', async () => {
    await using setting = await openSetting()
    const other = createServer()
    using _other = { [Symbol.dispose]: () => other.close() }
    // In its place once the game has ended: the test game does not listen itself.
    other.listen(setting.port)
    await once(other, 'listening')
    setting.timers.advance(MINUTES * 60_000)
    await setting.harness.reach(S, 'sleeping')
    const step = await until(async () => (await powerOf(setting)).step)
    assert.equal(
      step,
      'joining does not wake it: port PORT is in use by another program'.replace('PORT', String(setting.port)),
    )
    assert.equal((await powerOf(setting)).state, 'sleeping')
    await assert.rejects(setting.harness.power(S, 'start', setting.launch), { code: 'port_taken' })
    assert.equal((await powerOf(setting)).state, 'sleeping', 'it has not run')
    other.close()
    await once(other, 'close')
    await until(async () => {
      setting.timers.advance(SLEEP.retryMs)
      return isOpen(setting.port)
    })
    assert.equal((await powerOf(setting)).step, null)
  })

  test('nothing wakes a server that is being restored or deleted', async () => {
    await using setting = await openSetting()
    await fallAsleep(setting)
    {
      using _restore = await setting.harness.lockOf(S).exclude()
      assert.match(jsonOf(await ask(setting.port, JOIN, 1)).text, /cannot start at the moment/)
      assert.equal((await powerOf(setting)).state, 'sleeping')
    }
    assert.equal(await isOpen(setting.port), true, 'it still answers')
    await setting.harness.games.end(S)
    assert.equal((await powerOf(setting)).state, 'stopped')
    await until(async () => !(await isOpen(setting.port)))
    assert.ok(!kinds(setting).includes('game.woken'))
  })

  test('a start that fails leaves it asleep, says why, and can be tried again', async () => {
    await using setting = await openSetting()
    await fallAsleep(setting)
    const missing = { kind: 'file' as const, path: '/server.jar', hint: 'Upload it.' }
    setting.harness.edit(S, (record) => ({
      ...record,
      launch: record.launch && { ...record.launch, requires: [missing] },
    }))
    await setting.harness.restart()
    await until(() => isOpen(setting.port))
    await ask(setting.port, JOIN, 1)
    const step = await until(async () => (await powerOf(setting)).step)
    assert.equal(step, 'could not be woken: The file /server.jar is missing. Upload it.')
    assert.equal((await powerOf(setting)).state, 'sleeping')
    await until(() => isOpen(setting.port))
    assert.match(jsonOf(await ask(setting.port, JOIN, 1)).text, /cannot start at the moment/)
  })

  test('ten who join at once wake it once, and those who hold on keep nobody out', async () => {
    await using setting = await openSetting()
    await fallAsleep(setting)
    const silent = await Promise.all(
      Array.from({ length: SLEEP_DOOR.connectionsPerAddress + 4 }, () => open(setting.port)),
    )
    const answers = await Promise.all(Array.from({ length: 4 }, () => ask(setting.port, JOIN, 1)))
    assert.ok(answers.some((answer) => answer.length > 0 && /wakes up now/.test(jsonOf(answer).text)))
    await setting.harness.reach(S, 'running')
    assert.equal(kinds(setting).filter((kind) => kind === 'game.woken').length, 1)
    for (const socket of silent) socket.destroy()
  })

  test('a game over UDP is woken by the first packet that is no mere question', async () => {
    await using setting = await openSetting('udp')
    setting.timers.advance(MINUTES * 60_000)
    await setting.harness.reach(S, 'sleeping')
    using client = { socket: createSocket('udp4'), [Symbol.dispose]: () => client.socket.close() }
    const send = (bytes: Buffer) =>
      new Promise<void>((resolve) => client.socket.send(bytes, setting.port, '127.0.0.1', () => resolve()))
    const questions = [
      Buffer.alloc(0),
      Buffer.from('\xff\xff\xff\xffTSource Engine Query\0', 'latin1'),
      Buffer.from('01000000000000000000ffff00fefefefefdfdfdfd123456780000000000000000', 'hex'),
    ]
    for (const question of questions) await send(question)
    assert.deepEqual(questions.map(isQuestion), [true, true, true])
    await until(async () => {
      await send(Buffer.from('4f457403', 'hex'))
      return (await powerOf(setting)).state === 'running'
    })
    const woken = setting.harness.facts.filter(({ kind }) => kind === 'game.woken')
    assert.deepEqual(
      woken.map(({ properties }) => properties),
      [{ address: '127.0.0.1' }],
    )
  })
})

// A game goes on while the service is away, and is taken up again afterwards.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { isFailure } from '../../contract/errors.ts'
import { createManualTimers, type GamesHarness, openGames } from './games.testing.ts'
import { identify, isAlive, signalGroup } from './process-identity.ts'
import type { RunRecord } from './supervisor/protocol.ts'

const S = 'srv_castle'

suite('while the service is away', needs('bubblewrap'), () => {
  test('a supervisor whose folder was taken away ends with its game', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    const { game, supervisor } = runOf(harness.dataDir)
    harness.games.forget(S)
    rmSync(join(harness.dataDir, 'servers', S), { recursive: true })
    assert.ok(game && signalGroup(game, 'SIGKILL'))
    await until(async () => !isAlive(supervisor))
  })

  test('What ran before the machine went down runs again; what was stopped does not', async () => {
    await using harness = await openGames()
    for (const serverId of [S, 'srv_other']) {
      await harness.create(serverId, 'plain')
      await harness.power(serverId, 'start')
      await harness.reach(serverId, 'running')
    }
    await harness.power('srv_other', 'stop')
    await harness.reach('srv_other', 'stopped')
    const { game, supervisor } = runOf(harness.dataDir)
    harness.games.stop()
    assert.ok(game && signalGroup(game, 'SIGKILL'))
    await until(async () => !isAlive(supervisor))
    inAnotherBoot(harness)
    await harness.restart()
    await harness.reach(S, 'running')
    assert.equal((await harness.games.read({ serverId: 'srv_other' })).power.state, 'stopped')
    assert.deepEqual(
      harness.facts.filter(({ kind }) => kind === 'game.crashed'),
      [],
      'a machine that goes down is no crash of the game',
    )
  })

  test('a number that another process has now is never signalled', async () => {
    const own = identify(process.pid)
    assert.ok(own && isAlive(own))
    for (const other of [
      { ...own, startTime: '1' },
      { ...own, bootId: 'another' },
    ]) {
      assert.equal(isAlive(other), false)
      // Of our own group, were it sent.
      assert.equal(signalGroup(other, 'SIGKILL'), false)
    }
    const timers = createManualTimers()
    await using harness = await openGames({ timers })
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    const real = runOf(harness.dataDir)
    harness.games.stop()
    assert.ok(real.game)
    signalGroup(real.game, 'SIGKILL')
    await until(async () => !isAlive(real.supervisor))
    // As if both numbers had been given out again: to us.
    writeRun(harness.dataDir, { ...real, game: { ...own, startTime: '1' }, supervisor: { ...own, startTime: '1' } })
    await harness.restart()
    timers.advance(1000)
    await harness.reach(S, 'running')
  })

  test('a game whose supervisor was killed may save, counts as crashed, and is started again', async () => {
    const timers = createManualTimers()
    await using harness = await openGames({ timers })
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    const { game, supervisor } = runOf(harness.dataDir)
    assert.ok(signalGroup(supervisor, 'SIGKILL'))
    await harness.reach(S, 'crashed')
    assert.ok(game && !isAlive(game), 'nobody would hear it any more')
    timers.advance(1000)
    await harness.reach(S, 'running')
  })

  test('A restart of the service does not stop a game, also where its supervisor answers late', {
    // The supervisor answers after the restart: a service that waited for it would wait for ever.
    timeout: 120_000,
  }, async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    const { game, supervisor } = runOf(harness.dataDir)
    // As one whose disk does not answer.
    process.kill(supervisor.pid, 'SIGSTOP')
    {
      using _answers = { [Symbol.dispose]: () => process.kill(supervisor.pid, 'SIGCONT') }
      await harness.restart()
      assert.deepEqual(
        [(await harness.games.read({ serverId: S })).power.state, game && isAlive(game)],
        ['running', true],
      )
      await assert.rejects(harness.games.sendCommand({ serverId: S, command: 'x' }), (error) =>
        isFailure(error, 'server_busy'),
      )
    }
    await until(() =>
      harness.games.sendCommand({ serverId: S, command: 'hello' }).then(
        () => true,
        () => false,
      ),
    )
    await until(async () => (await harness.linesOf(S)).includes('You said: hello'))
    await harness.power(S, 'stop')
    await harness.reach(S, 'stopped')
    assert.equal((await harness.games.read({ serverId: S })).power.exit?.reason, 'requested')
  })

  test('a game that could not be taken up counts as running, and is taken up later or when somebody wants something of it', async () => {
    const timers = createManualTimers()
    await using harness = await openGames({ timers })
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    const file = runFileOf(harness.dataDir)
    const record = readFileSync(file)
    const isBusy = (error: unknown) => isFailure(error, 'server_busy')
    const loseSight = async () => {
      // As if the disk did not give it back.
      writeFileSync(file, '{')
      await harness.restart()
      assert.ok(harness.games.isRunning(S))
      assert.throws(
        () => harness.games.requireStopped(S),
        (error) => isFailure(error, 'server_running'),
      )
      for (const action of ['start', 'stop', 'restart', 'kill'] as const)
        await assert.rejects(harness.power(S, action), isBusy, action)
      await assert.rejects(harness.games.end(S), isBusy)
      await assert.rejects(harness.games.sendCommand({ serverId: S, command: 'x' }), isBusy)
      const { power } = await harness.games.read({ serverId: S })
      assert.deepEqual([power.state, power.step?.split(',')[0]], ['running', 'it cannot be reached'])
      writeFileSync(file, record)
    }
    await loseSight()
    timers.advance(1000)
    await until(async () => (await harness.games.read({ serverId: S })).power.step === null)
    await harness.games.sendCommand({ serverId: S, command: 'hello' })
    await until(async () => (await harness.linesOf(S)).includes('You said: hello'))

    await loseSight()
    assert.equal(await harness.power(S, 'kill'), true)
    await harness.reach(S, 'stopped')
    const { game } = JSON.parse(record.toString()) as RunRecord
    assert.ok(game && !isAlive(game))
  })

  test('a restart, and a start that waits for its turn, go on if the service dies between stop and start', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    for (const state of ['stopped', 'starting'] as const) {
      await harness.power(S, 'kill')
      await harness.reach(S, 'stopped')
      harness.edit(S, (record) => ({ ...record, isWanted: true, runId: null, power: { ...record.power, state } }))
      await harness.restart()
      await harness.reach(S, 'running')
    }
  })

  test('a start that failed, or was ended by a kill, leaves nothing under way if the service dies before that is recorded', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    for (const [state, asked] of [
      ['starting', null],
      ['stopping', 'kill'],
    ] as const) {
      await harness.power(S, 'kill')
      await harness.reach(S, 'stopped')
      harness.edit(S, (record) => ({ ...record, asked, isWanted: false, power: { ...record.power, state } }))
      await harness.restart()
      assert.equal((await harness.games.read({ serverId: S })).power.state, 'stopped')
      assert.equal(await harness.power(S, 'start'), true)
      await harness.reach(S, 'running')
    }
  })

  test('a start that was cut short is made again, and a supervisor that comes late starts nothing', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    await harness.power(S, 'kill')
    await harness.reach(S, 'stopped')
    // As a service leaves it that is killed just before it starts the supervisor.
    const change = { runId: 'run_00000000000000000000000000', isWanted: true }
    harness.edit(S, (record) => ({ ...record, ...change, power: { ...record.power, state: 'starting' } }))
    await harness.restart()
    await harness.reach(S, 'running')
    assert.equal((await harness.linesOf(S)).filter((line) => line === 'Started.').length, 2)
  })
})

const gameFolder = (dataDir: string) => join(dataDir, 'servers', S, 'game')
const runFileOf = (dataDir: string) =>
  join(gameFolder(dataDir), readdirSync(gameFolder(dataDir)).find((name) => name.startsWith('run-')) ?? '')
const runOf = (dataDir: string) => JSON.parse(readFileSync(runFileOf(dataDir), 'utf8')) as RunRecord
const writeRun = (dataDir: string, record: RunRecord) => writeFileSync(runFileOf(dataDir), JSON.stringify(record))

function inAnotherBoot({ dataDir, edit }: GamesHarness): void {
  edit(S, (record) => ({ ...record, bootId: 'another' }))
  const run = runOf(dataDir)
  const game = run.game && { ...run.game, bootId: 'another' }
  writeRun(dataDir, { ...run, game, supervisor: { ...run.supervisor, bootId: 'another' } })
}

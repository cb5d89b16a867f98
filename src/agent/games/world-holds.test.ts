// Holding a world still, where a moment that the front door cannot time has to be met: the service dies in the middle.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { QUIESCE } from '../../../test/support/games.ts'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { isFailure } from '../../contract/errors.ts'
import type { Quiesce } from '../../contract/games/launch.ts'
import type { PowerState } from '../../contract/games/power.ts'
import { createWatchers } from '../../kit/waiting/watchers.ts'
import { createConsoleTail } from './console/console-tail.ts'
import { createManualTimers, type GamesHarness, openGames } from './games.testing.ts'
import { SYSTEM_TIMERS } from './power/stop-ladder.ts'
import { type ProcessIdentity, signalGroup } from './process-identity.ts'
import { listen, packet, rconGame } from './remote-console/rcon-game.testing.ts'
import type { RunRecord } from './supervisor/protocol.ts'
import { createWorldHolds, type HeldGame, type WorldHoldsDeps } from './world-holds.ts'

const S = 'srv_world'
const NEVER = new AbortController().signal

async function running(harness: GamesHarness, quiesce: Partial<Quiesce> = {}): Promise<void> {
  await harness.create(S, 'saving')
  await harness.power(S, 'start', { quiesce: { ...QUIESCE, ...quiesce } })
  await harness.reach(S, 'running')
}

const noteOf = ({ filesOf }: GamesHarness) => join(filesOf(S), '..', 'game', 'held.json')
const half = ({ filesOf }: GamesHarness, name: string) => readFileSync(join(filesOf(S), name), 'utf8')
const commandsOf = async (harness: GamesHarness) => {
  const { lines } = await harness.games.readConsole({ serverId: S, before: null, limit: 500, q: null })
  return lines
    .filter(({ source }) => source === 'command')
    .map(({ text }) => text)
    .reverse()
}

function gameOf({ filesOf }: GamesHarness): ProcessIdentity {
  const read = (name: string) => JSON.parse(readFileSync(join(filesOf(S), '..', 'game', name), 'utf8'))
  const { game } = read(`run-${read('power.json').runId}.json`) as RunRecord
  return game as ProcessIdentity
}

suite('a world that is held still is let go', { timeout: 120_000, ...needs('bubblewrap') }, () => {
  test('if the service died in between, at its next start', async () => {
    await using harness = await openGames()
    await running(harness)
    await harness.games.holdWorld(S, NEVER)
    assert.equal(half(harness, 'a.dat'), half(harness, 'b.dat'))
    assert.ok(existsSync(noteOf(harness)), 'the note comes first')
    await harness.restart()
    assert.deepEqual(await commandsOf(harness), ['save-off', 'save-all', 'save-on'])
    assert.ok(!existsSync(noteOf(harness)))
    const before = half(harness, 'a.dat')
    await until(async () => half(harness, 'a.dat') !== before)
  })

  test('needs no word where the game is another one since', async () => {
    await using harness = await openGames()
    await running(harness)
    const hold = await harness.games.holdWorld(S, NEVER)
    await harness.power(S, 'kill')
    await harness.reach(S, 'stopped')
    await harness.power(S, 'start', { quiesce: QUIESCE })
    await harness.reach(S, 'running')
    const world = await hold.release()
    assert.deepEqual([world.how, world.warnings.length], ['loose', 1])
    assert.deepEqual(await commandsOf(harness), ['save-off', 'save-all'])
    assert.ok(!existsSync(noteOf(harness)))
    await harness.games.holdWorld(S, NEVER)
    harness.games.stop()
    await harness.power(S, 'kill')
    await harness.restart()
    await until(async () => !existsSync(noteOf(harness)))
    assert.deepEqual(await commandsOf(harness), ['save-off', 'save-all', 'save-off', 'save-all'])
  })

  test('is let go before the game is stopped, also by a service that finds it so', async () => {
    await using harness = await openGames()
    await running(harness)
    await harness.games.holdWorld(S, NEVER)
    await harness.power(S, 'stop')
    await harness.reach(S, 'stopped')
    assert.deepEqual(await commandsOf(harness), ['save-off', 'save-all', 'save-on', 'stop'])
    assert.match((await harness.linesOf(S)).join('\n'), /Saved and stopped/)
    await harness.power(S, 'start', { quiesce: QUIESCE })
    await harness.reach(S, 'running')
    await harness.games.holdWorld(S, NEVER)
    harness.edit(S, (record) => ({ ...record, asked: 'stop', isWanted: false }))
    await harness.restart()
    await harness.reach(S, 'stopped')
    assert.deepEqual((await commandsOf(harness)).slice(4), ['save-off', 'save-all', 'save-on', 'stop'])
  })

  test('One that does not read its console is told again until it does.', async () => {
    await using harness = await openGames()
    await running(harness)
    const hold = await harness.games.holdWorld(S, NEVER)
    const game = gameOf(harness)
    signalGroup(game, 'SIGSTOP')
    const full = async () => {
      for (;;) await harness.games.sendCommand({ serverId: S, command: 'x'.repeat(4000) })
    }
    await assert.rejects(full(), (error) => isFailure(error, 'server_busy'))
    const { warnings } = await hold.release()
    assert.match(warnings.join(), /told again until it has/)
    const other = await (await harness.games.holdWorld(S, NEVER)).release()
    assert.deepEqual([other.how, /does not read its console/.test(other.warnings.join())], ['loose', true])
    signalGroup(game, 'SIGCONT')
    await until(async () => (await commandsOf(harness)).at(-1) === 'save-on')
    await until(async () => !existsSync(noteOf(harness)))
  })

  test('a line of before the command does not count, and one that has to be asked is asked until it says so', async () => {
    await using harness = await openGames()
    await running(harness, { before: ['save-off'], poll: 'save-all', timeoutSeconds: 30 })
    await harness.games.sendCommand({ serverId: S, command: 'save-all' })
    await until(async () => (await harness.linesOf(S)).includes('Saved the game'))
    writeFileSync(join(harness.filesOf(S), 'mute'), '')
    const hold = harness.games.holdWorld(S, NEVER)
    const asked = async () => (await commandsOf(harness)).filter((command) => command === 'save-all').length
    await until(async () => (await asked()) >= 3)
    rmSync(join(harness.filesOf(S), 'mute'))
    assert.equal((await (await hold).release()).how, 'still')
  })

  test('So is one that does not answer over its connection.', async () => {
    await using harness = await openGames()
    const sent: string[] = []
    let isMute = false
    using game = await listen(
      rconGame((socket, id, text) => {
        if (text !== '') sent.push(text)
        if (!isMute) socket.write(packet(id, 0, text === 'save-all' ? 'Saved the game' : ''))
        else socket.destroy()
      }),
    )
    const remote = { via: 'rcon', port: game.port, secret: 'secret' } as const
    await running(harness, { remote })
    const { how, heldMs } = await (await harness.games.holdWorld(S, NEVER)).release()
    assert.deepEqual([how, typeof heldMs, sent.splice(0)], ['still', 'number', ['save-off', 'save-all', 'save-on']])

    await harness.games.holdWorld(S, NEVER)
    await harness.restart()
    assert.deepEqual([sent.splice(0), existsSync(noteOf(harness))], [['save-off', 'save-all', 'save-on'], false])

    const hold = await harness.games.holdWorld(S, NEVER)
    isMute = true
    assert.match((await hold.release()).warnings.join(), /told again until it has/)
    isMute = false
    await until(async () => !existsSync(noteOf(harness)))
    assert.deepEqual([sent.at(0), sent.at(-1)], ['save-off', 'save-on'])
    assert.deepEqual(await commandsOf(harness), [], 'the console is left alone')

    isMute = true
    const loose = await (await harness.games.holdWorld(S, NEVER)).release()
    assert.equal(loose.how, 'loose')
    assert.match(loose.warnings.join(), /could not be told over RCON .* it ended the connection/)
    isMute = false
    await until(async () => !existsSync(noteOf(harness)))
  })

  test('A game that could not be reached over its connection was never held, so the next backup tries again.', async () => {
    await using harness = await openGames()
    const sent: string[] = []
    using game = await listen(
      rconGame((socket, id, text) => {
        if (text !== '') sent.push(text)
        socket.write(packet(id, 0, text === 'save-all' ? 'Saved the game' : ''))
      }),
    )
    await running(harness, { remote: { via: 'rcon', port: game.port, secret: 'wrong' } })
    for (let backup = 1; backup <= 2; backup++) {
      const { how, warnings } = await (await harness.games.holdWorld(S, NEVER)).release()
      assert.deepEqual([how, warnings.length, sent, existsSync(noteOf(harness))], ['loose', 1, [], false])
      assert.match(warnings.join(), /over RCON .* refuses the password/)
    }
  })

  test('one that takes what holds it and refuses what lets it go on is told less and less often', async () => {
    const timers = createManualTimers()
    const remote = { via: 'rcon', port: 1, secret: '' } as const
    using older = olderHold({
      current: (run) => ({ run, quiesce: { ...QUIESCE, remote }, state: 'running' }),
      timers,
    })
    await older.holds.interrupt(S)
    for (const pauseMs of [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) {
      await until(async () => timers.pendingMs().length === 1)
      assert.deepEqual(timers.pendingMs(), [pauseMs])
      timers.advance(pauseMs)
    }
    const { warnings } = await (await older.holds.hold(S, NEVER)).release()
    assert.match(warnings.join(), /could not be told over RCON .* lets it go on after an earlier backup/)
  })

  test('a backup while the server is installed is not offline', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    assert.equal((await (await harness.games.holdWorld(S, NEVER)).release()).how, 'idle')
    const hold = await harness.games.holdWorld(S, NEVER)
    const steps = [
      { do: 'run' as const, args: ['sh', '-c', 'while [ ! -e go ]; do sleep 0.05; done'] as [string, ...string[]] },
    ]
    const installing = harness.install(S, { steps })
    await until(async () => (await harness.linesOf(S)).includes('Started.'))
    const during = await (await harness.games.holdWorld(S, NEVER)).release()
    writeFileSync(join(harness.filesOf(S), 'go'), '')
    await installing
    for (const { how, warnings } of [during, await hold.release()]) {
      assert.equal(how, 'loose')
      assert.match(warnings.join(), /was being installed/)
    }
  })

  test('a game that is told to stop while an older hold is let go gets no command after it', async () => {
    let state: PowerState = 'running'
    using older = olderHold({
      current: (run) => ({ run, quiesce: { ...QUIESCE, timeoutSeconds: 1 }, state }),
      timers: SYSTEM_TIMERS,
      onInput() {
        state = 'stopping'
      },
    })
    const { how } = await (await older.holds.hold(S, NEVER)).release()
    assert.deepEqual([how, older.sent], ['loose', ['save-on']])
  })

  test('a hold that a stop has ended sends nothing more', async () => {
    let interrupting: Promise<void> | undefined
    using older = olderHold({
      current: (run) => ({ run, quiesce: QUIESCE, state: 'running' }),
      timers: SYSTEM_TIMERS,
      onInput(command) {
        if (command === 'save-off') interrupting = older.holds.interrupt(S)
      },
    })
    const { how } = await (await older.holds.hold(S, NEVER)).release()
    await interrupting
    assert.deepEqual([how, older.sent], ['loose', ['save-on', 'save-off', 'save-on']])
  })

  test('also a game that could not be taken up when the service came back, as soon as it has been', async () => {
    let isTakenUp = false
    const timers = createManualTimers()
    using older = olderHold({
      current: (run) => (isTakenUp ? { run, quiesce: QUIESCE, state: 'running' } : undefined),
      timers,
    })
    await older.holds.interrupt(S)
    assert.deepEqual([older.sent, older.isNoted()], [[], true])
    isTakenUp = true
    timers.advance(60_000)
    await until(async () => !older.isNoted())
    assert.deepEqual(older.sent, ['save-on'])
  })
})

interface OlderHold extends Pick<WorldHoldsDeps, 'timers'> {
  current(run: HeldGame['run']): HeldGame | undefined
  onInput?(command: string): void
}

/** A note of an earlier service, of a game that may run. */
function olderHold({ current, timers, onInput = () => {} }: OlderHold) {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-holds-'))
  const noteFile = () => join(folder, 'held.json')
  writeFileSync(noteFile(), JSON.stringify({ id: 'old', runId: 'run_1', after: ['save-on'] }))
  const sent: string[] = []
  const run = {
    ...{ runId: 'run_1', tail: () => 0 },
    async input(command: string) {
      sent.push(command)
      onInput(command)
      return null
    },
  }
  const holds = createWorldHolds({
    ...{ noteFile, startId: () => null, isActive: () => true, timers, lines: createWatchers() },
    ...{ installations: () => ({ isUnderWay: false, count: 0 }), console: () => createConsoleTail(folder) },
    current: () => current(run),
    onUnexpected: (error) => assert.fail(error as Error),
  })
  return {
    holds,
    sent,
    isNoted: () => existsSync(noteFile()),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  }
}

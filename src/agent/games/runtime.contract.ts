// What every runtime owes, run by each adapter's tests with real games.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { until } from '../../../test/support/until.ts'
import { isFailure } from '../../contract/errors.ts'
import type { Runtime } from '../../contract/games/power.ts'
import { createManualTimers, type GamesHarness, type HarnessOptions, NO_LIMITS } from './games.testing.ts'
import { isAlive, signalGroup } from './process-identity.ts'
import type { RunRecord } from './supervisor/protocol.ts'

const S = 'srv_castle'
const FLOOD_LINES = 20_000

export interface RuntimeUnderTest {
  kind: Runtime['kind']
  isolation: Runtime['isolation']
  open(options?: HarnessOptions): Promise<GamesHarness>
  /** Of the environment, beside those that every game has. */
  ownNames: readonly string[]
}

const exitOf = async (harness: GamesHarness) => (await harness.games.read({ serverId: S })).power.exit
const runtimeOf = async (harness: GamesHarness) => (await harness.games.read({ serverId: S })).runtime

async function start(harness: GamesHarness, game: Parameters<GamesHarness['create']>[1]): Promise<void> {
  await harness.create(S, game)
  await harness.power(S, 'start')
  await harness.reach(S, 'running')
}

/** As its supervisor writes it down. */
export function runOf({ dataDir }: GamesHarness): RunRecord {
  const folder = join(dataDir, 'servers', S, 'game')
  const name = readdirSync(folder).find((entry) => /^run-run_.*\.json$/.test(entry)) ?? ''
  return JSON.parse(readFileSync(join(folder, name), 'utf8')) as RunRecord
}

/** Behind an init it is known a moment later who leads the game. */
export const ledRunOf = (harness: GamesHarness) =>
  until(async () => {
    const run = runOf(harness)
    return run.game && { ...run, game: run.game }
  })

/** Its own world of processes, which only they are in. */
function worldOf(pid: string | number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`)
  } catch {
    return undefined
  }
}
const livesIn = (world: string) => readdirSync('/proc').some((name) => /^\d+$/.test(name) && worldOf(name) === world)

export function runtimeContract(name: string, options: { skip?: string }, under: RuntimeUnderTest): void {
  const { open } = under

  suite(`GameRuntime contract: ${name}`, options, () => {
    test('a game is started, comes up, obeys its console and stops the way its template says', async () => {
      await using harness = await open()
      const { games, facts } = harness
      await harness.create(S, 'plain')
      assert.equal(await harness.power(S, 'start'), true)
      await harness.reach(S, 'running')
      assert.equal(await harness.power(S, 'start'), false, 'it runs already')
      const runtime = await runtimeOf(harness)
      assert.deepEqual([runtime?.kind, runtime?.isolation], [under.kind, under.isolation])
      await games.sendCommand({ serverId: S, command: 'hello' })
      await until(async () => (await harness.linesOf(S)).includes('You said: hello'))
      assert.equal(await harness.power(S, 'stop'), true)
      assert.deepEqual((await games.read({ serverId: S })).power.step, 'waiting for the world to save')
      await harness.reach(S, 'stopped')
      const exit = await exitOf(harness)
      assert.deepEqual([exit?.reason, exit?.code, exit?.signal], ['requested', 0, null])
      assert.ok(existsSync(join(harness.filesOf(S), 'world.txt')), 'it could save')
      assert.equal(await harness.power(S, 'stop'), false)
      assert.deepEqual(await harness.linesOf(S), [
        ...['Started.', 'Loading the world', 'Done (0.1s)!', 'hello', 'You said: hello'],
        ...['stop', 'Saving the world', 'Goodbye', 'Ended with exit code 0.'],
      ])
      assert.deepEqual(
        facts.map(({ kind }) => kind),
        ['power.requested', 'game.running', 'console.command_sent', 'power.requested', 'game.stopped'],
      )
      await assert.rejects(games.sendCommand({ serverId: S, command: 'x' }), (e) => isFailure(e, 'server_not_running'))
      assert.deepEqual(harness.errors, [])
    })

    test('each end of a game is told apart: from inside, with a code, by a signal', async () => {
      await using harness = await open({ autoRestart: false })
      await start(harness, 'plain')
      await harness.games.sendCommand({ serverId: S, command: 'quit' })
      await harness.reach(S, 'stopped')
      assert.equal((await exitOf(harness))?.reason, 'in_game')
      await harness.power(S, 'start')
      await harness.reach(S, 'running')
      await harness.games.sendCommand({ serverId: S, command: 'crash' })
      await harness.reach(S, 'crashed')
      const crashed = await exitOf(harness)
      assert.deepEqual([crashed?.reason, crashed?.code, crashed?.signal], ['crashed', 7, null])
    })

    test('a game that ignores its stop and SIGTERM is killed at the end of the ladder, and that is said', async () => {
      await using harness = await open()
      await harness.create(S, 'stubborn')
      const stop = [
        { command: 'stop', timeoutSeconds: 0.05, message: null },
        { signal: 'SIGTERM' as const, timeoutSeconds: 0.05, message: null },
      ]
      await harness.power(S, 'start', { stop })
      await harness.reach(S, 'running')
      await harness.power(S, 'stop')
      await harness.reach(S, 'stopped')
      const exit = await exitOf(harness)
      assert.deepEqual([exit?.reason, exit?.signal], ['killed', 'SIGKILL'])
    })

    test('kill works whatever else is under way, also while a stop hangs', async () => {
      await using harness = await open()
      await harness.create(S, 'stubborn')
      await harness.power(S, 'start', { stop: [{ command: 'stop', timeoutSeconds: 3600, message: null }] })
      await harness.reach(S, 'running')
      await harness.power(S, 'stop')
      assert.equal((await harness.games.read({ serverId: S })).power.state, 'stopping')
      assert.equal(await harness.power(S, 'kill'), true)
      await harness.reach(S, 'stopped')
      assert.equal((await exitOf(harness))?.reason, 'killed')
      assert.equal(await harness.power(S, 'kill'), false)
    })

    test('a signal reaches the game behind a shell, so that it can save', async () => {
      await using harness = await open()
      await harness.create(S, 'plain')
      const script =
        '#!/bin/sh\n(trap "echo saved; exit 0" INT; echo "Done ("; while :; do sleep 0.05; done)\necho over\n'
      writeFileSync(join(harness.filesOf(S), 'start'), script)
      const stop = [{ signal: 'SIGINT' as const, timeoutSeconds: 20, message: null }]
      await harness.power(S, 'start', { stop })
      await harness.reach(S, 'running')
      await harness.power(S, 'stop')
      await harness.reach(S, 'stopped')
      assert.ok((await harness.linesOf(S)).includes('saved'))
    })

    test('what uses more memory than it may is out of memory, not crashed', async (context) => {
      await using harness = await open({ autoRestart: false })
      await harness.create(S, 'hungry')
      await harness.power(S, 'start', {}, { ...NO_LIMITS, memoryBytes: 64 * 1024 * 1024 })
      if ((await runtimeOf(harness))?.enforced?.memory !== 'cgroup')
        return context.skip('no control group can be made here')
      await harness.reach(S, 'crashed')
      assert.equal((await exitOf(harness))?.reason, 'out_of_memory')
    })

    test('a game that forks without end is held to its processes, and ends with all of them', async (context) => {
      await using harness = await open()
      await harness.create(S, 'forking')
      await harness.power(S, 'start', {}, { ...NO_LIMITS, processes: 40 })
      if ((await runtimeOf(harness))?.enforced?.processes !== 'cgroup')
        return context.skip('no control group can be made here')
      await until(async () => (await harness.linesOf(S)).includes('no more'))
      const { game, cgroups } = await ledRunOf(harness)
      const groups = cgroups.map(({ folder }) => folder)
      const world = worldOf(game.pid)
      assert.ok(world && world !== worldOf('self') && livesIn(world))
      await harness.power(S, 'kill')
      await harness.reach(S, 'stopped')
      await until(async () => !groups.some((folder) => existsSync(folder)))
      await until(async () => !livesIn(world))
    })

    test('every line of a flood is there once and in order, also across a restart of the service', async () => {
      await using harness = await open()
      await harness.create(S, 'flood')
      await harness.power(S, 'start', { ready: [] })
      await harness.reach(S, 'running')
      await harness.games.sendCommand({ serverId: S, command: String(FLOOD_LINES) })
      await harness.restart()
      const told = await until(async () => {
        const { lines } = await harness.games.readConsole({
          serverId: S,
          before: null,
          limit: FLOOD_LINES * 2,
          q: null,
        })
        return lines.some(({ text }) => text.startsWith('Done')) && lines.reverse()
      })
      const numbers = told.filter(({ text }) => text.startsWith('line ')).map(({ text }) => Number(text.split(' ')[1]))
      assert.deepEqual(
        numbers,
        Array.from({ length: FLOOD_LINES }, (_, index) => index + 1),
      )
      assert.deepEqual(
        told.map(({ line }) => line),
        told.map((_, index) => index + 1),
      )
    })

    test('No line is lost, and console and power work on the game afterwards', async () => {
      await using harness = await open()
      await start(harness, 'plain')
      await harness.restart()
      assert.equal((await harness.games.read({ serverId: S })).power.state, 'running')
      await harness.games.sendCommand({ serverId: S, command: 'still there?' })
      await until(async () => (await harness.linesOf(S)).includes('You said: still there?'))
      await harness.power(S, 'stop')
      await harness.reach(S, 'stopped')
      assert.equal((await exitOf(harness))?.reason, 'requested')
      assert.deepEqual(harness.errors, [])
    })

    test('a crash that happened meanwhile is seen, told once, and restarted', async () => {
      const timers = createManualTimers()
      await using harness = await open({ timers })
      await start(harness, 'plain')
      const { game } = await ledRunOf(harness)
      harness.games.stop()
      assert.ok(signalGroup(game, 'SIGKILL'))
      await until(async () => !isAlive(game))
      await harness.restart()
      await harness.reach(S, 'crashed')
      timers.advance(1000)
      await until(async () => (await harness.linesOf(S)).filter((line) => line === 'Started.').length === 2)
      await harness.reach(S, 'running')
      const crashes = harness.facts.filter(({ kind }) => kind === 'game.crashed')
      assert.deepEqual(
        crashes.map(({ properties }) => properties.reason),
        ['killed'],
      )
    })

    test('binary rubbish, endless lines and a last line without its end are shown as they can be', async () => {
      await using harness = await open()
      await start(harness, 'rubbish')
      await harness.games.sendCommand({ serverId: S, command: 'go' })
      await harness.reach(S, 'stopped')
      assert.deepEqual((await harness.linesOf(S)).slice(1), [
        ...['bad \ufffd\ufffd bytes \u0000 here', '\u001b[31mred\u001b[0m', 'y'.repeat(16 * 1024), 'Done (0.1s)!'],
        ...['go', 'no end', 'Ended with exit code 0.'],
      ])
    })

    test('a game that tries to read the database, the secret, another server and the service gets nothing', async () => {
      await using harness = await open()
      const { dataDir } = harness
      await harness.create(S, 'spy')
      await harness.create('srv_victim', 'plain')
      const victim = harness.filesOf('srv_victim')
      // Even if somebody has left everything open to all.
      for (const file of ['gamekeeper.db', 'secret']) writeFileSync(join(dataDir, file), 'x', { mode: 0o666 })
      writeFileSync(join(victim, 'world.dat'), 'x', { mode: 0o666 })
      chmodSync(dataDir, 0o777)
      const targets = [
        ...[dataDir, join(dataDir, 'gamekeeper.db'), join(dataDir, 'secret'), victim, join(victim, 'world.dat')],
        ...[`/proc/${process.pid}/environ`, `/proc/${process.pid}/mem`, '/etc/shadow', '/etc/gamekeeper'],
        ...['/root', '/home'],
      ]
      writeFileSync(join(harness.filesOf(S), 'targets'), targets.map((path) => `${path}\n`).join(''))
      process.env.GAMEKEEPER_TEST_SECRET = 'x'
      await harness.power(S, 'start')
      delete process.env.GAMEKEEPER_TEST_SECRET
      await harness.reach(S, 'running')
      const lines = await harness.linesOf(S)
      assert.deepEqual(
        lines.filter((line) => /^(?:READ|SEEN|LEAKED|WROTE)/.test(line)),
        [],
      )
      assert.equal(lines.filter((line) => line.startsWith('kept from')).length, targets.length)
      const names = lines.filter((line) => line.startsWith('env ')).map((line) => line.slice(4).split('=')[0] ?? '')
      const ofShells = new Set(['PWD', '_', 'OLDPWD', 'SHLVL', ...under.ownNames])
      assert.deepEqual(
        names.filter((each) => !ofShells.has(each)),
        ['HOME', 'LANG', 'PATH', 'TERM'],
      )
      assert.ok(lines.includes('own tmp'))
      assert.match(lines.find((line) => line.startsWith('groups of')) ?? '', /capabilities 0{16} 0{16}/)
      if (process.getuid?.() === 0)
        assert.match(lines.find((line) => line.startsWith('id ')) ?? '', /^id 19000\d{5} 19000\d{5} 19000\d{5}$/)
    })
  })
}

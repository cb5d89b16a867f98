import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { useCli } from '../../../test/support/cli.ts'
import { gameFile } from '../../../test/support/games.ts'
import { needs } from '../../../test/support/needs.ts'
import { writeStats } from '../../../test/support/stats.ts'
import { openTerminal } from '../../../test/support/terminal.ts'
import { until } from '../../../test/support/until.ts'
import { createClient } from '../../sdk/index.ts'
import { EXIT } from '../exit-codes.ts'

describe('games', needs('bubblewrap'), () => {
  const cli = useCli()

  async function createGame(name: string): Promise<string> {
    const { id } = await cli.service.createServer({ name })
    copyFileSync(gameFile('plain'), join(cli.service.dataDir, 'servers', id, 'files', 'start'))
    return id
  }

  test('start, console, restart, kill and stop say what came of it', async () => {
    const id = await createGame('Castle')
    assert.deepEqual(await cli.run('start', 'Castle'), { code: 0, stdout: 'Castle is running.\n', stderr: '' })
    // Its template has no pattern for when it is ready.
    await until(async () => (await cli.run('console', 'Castle', '--search', 'Done')).stdout !== '')
    assert.equal((await cli.run('console', 'Castle', '--send', 'hello')).code, 0)
    await until(async () => (await cli.run('console', 'Castle', '--search', 'said: hello')).stdout !== '')
    const { stdout } = await cli.run('console', 'Castle', '--lines', '3')
    assert.equal(stdout, 'Done (0.1s)!\n> hello\nYou said: hello\n')
    const lines = await cli.json('console', id, '--lines', '1')
    assert.deepEqual([lines.length, lines[0].text, lines[0].source], [1, 'You said: hello', 'stdout'])
    assert.equal((await cli.run('restart', 'Castle')).stdout, 'Castle is running.\n')
    assert.match((await cli.run('stop', 'Castle')).stdout, /^Castle is stopped: requested \(exit code 0\)\.\n$/)
    const { power } = await cli.json('start', 'Castle', '--no-wait')
    assert.ok(['starting', 'running'].includes(power.state), power.state)
    assert.match((await cli.run('kill', 'Castle')).stdout, /^Castle is stopped: killed \(SIGKILL\)\.\n$/)
    const refused = await cli.run('console', 'Castle', '--send', 'x')
    assert.deepEqual([refused.code, refused.stdout], [5, ''])
    assert.match(refused.stderr, /does not run/)
    assert.equal((await cli.run('console', 'Castle', '--send', 'x', '--follow')).code, 2)
  })

  test('on a terminal the console shows what came before, sends what is typed, and is left while the game goes on', async () => {
    await createGame('Typed')
    await cli.run('start', 'Typed')
    await cli.run('console', 'Typed', '--send', 'before')
    await until(async () => (await cli.run('console', 'Typed', '--search', 'said: before')).stdout !== '')
    const terminal = openTerminal(['console', 'Typed'], cli.envOf())
    await terminal.sees(/You said: before/)
    terminal.type('hello\r')
    await terminal.sees(/You said: hello/)
    // Arrow up brings the last command back, which is changed before it is sent.
    terminal.type('\x1b[A again\r')
    await terminal.sees(/You said: hello again/)
    // Ctrl-R finds one of before, also of somebody else; a second one goes further back.
    terminal.type('\x12e')
    await terminal.sees(/\(search\) e: hello again/)
    terminal.type('f')
    await terminal.sees(/\(search\) ef: before/)
    terminal.type('\r')
    await terminal.sees(/You said: before/)
    terminal.type('\x12hell')
    await terminal.sees(/\(search\) hell: hello again/)
    terminal.type('\x12')
    await terminal.sees(/\(search\) hell: hello(?! again)/)
    // Given up, nothing of it is left in the line.
    terminal.type('\x07\x12zzz')
    await terminal.sees(/\(search\) zzz: /)
    terminal.type('\x07end\r')
    await terminal.sees(/You said: end/)
    terminal.type('\x03')
    assert.equal(await terminal.ended, EXIT.interrupted)
    assert.equal((await cli.json('server', 'show', 'Typed')).power.state, 'running')
    const found = openTerminal(['console', 'Typed', '--search', 'AGAIN'], cli.envOf())
    await found.sees(/You said: hello again/)
    assert.equal(await found.ended, EXIT.ok, 'a search ends by itself, also on a terminal')
    await cli.run('kill', 'Typed')
  })

  test('stats and players are shown as tables and as JSON, and the client follows what is measured', async () => {
    const id = await createGame('Measured')
    assert.deepEqual(await cli.run('players', 'Measured'), { code: 0, stdout: 'The game does not run.\n', stderr: '' })
    assert.equal((await cli.run('stats', 'Measured')).stderr, 'Nothing was measured: the game did not run.\n')
    const times = writeStats(join(cli.service.dataDir, 'servers', id, 'game'), 3)
    const { stdout } = await cli.run('stats', 'Measured')
    const [head = '', ...rows] = stdout.trimEnd().split('\n')
    assert.match(head, /^TIME +CPU +MEMORY +DISK +RECEIVED +SENT +PLAYERS$/)
    assert.equal(rows.length, 3)
    assert.match(rows[0] ?? '', / UTC +12.35 % +954 MiB +- +- +- +2$/)
    assert.equal((await cli.json('stats', 'Measured', '--since', '1h', '--step', '3600')).step, 3600)
    assert.equal((await cli.run('stats', 'Measured', '--step', 'x')).code, 2)
    const client = createClient({ baseUrl: cli.service.url, token: cli.service.adminToken })
    const seen: number[] = []
    for await (const { at } of client.stats.follow(id, { lastEventId: String(times[0]) })) {
      seen.push(Date.parse(at))
      if (seen.length === 2) break
    }
    assert.deepEqual(seen, times.slice(1))
    await client.power.start(id)
    const players = await client.players.read(id)
    assert.deepEqual([players.online, players.reason], [null, 'not_supported'])
    await client.power.kill(id)
  })

  test('the client follows a console from a line on, and pages back through it', async () => {
    const id = await createGame('Followed')
    const { url, adminToken } = cli.service
    const client = createClient({ baseUrl: url, token: adminToken })
    await client.power.start(id)
    const seen: number[] = []
    for await (const { line, text } of client.console.follow(id, { lastEventId: '0' })) {
      seen.push(line)
      if (text === 'Done (0.1s)!') await client.console.send(id, 'more')
      if (text === 'You said: more') break
    }
    assert.deepEqual(
      seen,
      seen.map((_, index) => index + 1),
    )
    assert.deepEqual(
      (await Array.fromAsync(client.console.all(id, { limit: 2 }))).map(({ line }) => line),
      seen.toReversed(),
    )
    await client.power.kill(id)
  })

  test('the runtime of a server is chosen, and its game is installed', async () => {
    const create = ['server', 'create', 'Arena', '--template', 'paper']
    assert.equal((await cli.run(...create, '--runtime', 'tent')).code, 2)
    const { runtime } = await cli.json(...create, '--image', 'docker.io/library/eclipse-temurin:21')
    assert.deepEqual([runtime.kind, runtime.image], ['container', 'docker.io/library/eclipse-temurin:21'])
    assert.equal((await cli.json('server', 'set', 'Arena', '--runtime', 'none')).runtime, null)
    assert.match((await cli.run('server', 'set', 'Arena', '--runtime', 'container')).stdout, /^Runtime +container$/m)
    await cli.service.createServer({ name: 'Bare' })
    assert.equal((await cli.run('server', 'install', 'Bare')).code, 5)
    await cli.service.createServer({ name: 'Jar', game: 'minecraft-java' })
    assert.equal((await cli.run('server', 'install', 'Jar', '--wipe')).stdout, 'Installed Jar.\n')
    assert.equal((await cli.json('server', 'install', 'Jar', '--no-wait')).kind, 'install')
  })
})

// Installing, step by step, with the runtime that needs no engine.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { needs } from '../../../../test/support/needs.ts'
import { until } from '../../../../test/support/until.ts'
import { isFailure } from '../../../contract/errors.ts'
import type { LaunchInstallStep } from '../../../contract/games/launch.ts'
import { createManualTimers, openGames } from '../games.testing.ts'
import type { GameRuntime, Run, RunEvents } from '../runtime.ts'

const S = 'srv_castle'
const BYTES = gzipSync('the jar\n')
const SHA256 = createHash('sha256').update(BYTES).digest('hex')
const SCRIPT: LaunchInstallStep = { do: 'script', image: 'alpine', entrypoint: 'sh', text: 'true' }
const shell = (line: string): LaunchInstallStep => ({ do: 'run', args: ['sh', '-c', line] })

async function startWeb() {
  const web = createServer((_, response) => response.end(BYTES)).listen(0, '127.0.0.1')
  await once(web, 'listening')
  const { port } = web.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/server.gz`, [Symbol.dispose]: () => void web.close() }
}

suite('installing', needs('bubblewrap'), () => {
  test('steps are gone through in order, and the console has what they say', async () => {
    using web = await startWeb()
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const file = (path: string) => readFileSync(join(harness.filesOf(S), path), 'utf8')
    const done = await harness.install(S, {
      change: { environment: { GREETING: 'hello' } },
      steps: [
        { do: 'download', url: web.url, sha256: SHA256, path: '/bin/server.gz' },
        { do: 'write', path: '/eula.txt', text: 'eula=true\n' },
        shell('echo "$GREETING from $(pwd)"; id -u > uid; cat eula.txt >> copy; echo oops >&2'),
      ],
    })
    assert.deepEqual(done, { steps: 3 })
    assert.deepEqual(readFileSync(join(harness.filesOf(S), 'bin/server.gz')), BYTES)
    assert.equal(file('copy'), 'eula=true\n')
    if (process.getuid?.() === 0) assert.match(file('uid'), /^19000\d{5}\n$/, 'never as root')
    const lines = await harness.linesOf(S)
    assert.deepEqual(lines.filter((line) => !['Started.', 'oops'].includes(line)).sort(), [
      ...['Ended with exit code 0.', 'Installed.', 'Installing: step 1 of 3, download /bin/server.gz'],
      ...['Installing: step 2 of 3, write /eula.txt', 'Installing: step 3 of 3, run sh', 'hello from /server/'],
    ])
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    assert.deepEqual(harness.errors, [])
  })

  test('bytes that are not those that were asked for are never in place', async () => {
    using web = await startWeb()
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const steps: LaunchInstallStep[] = [
      { do: 'download', url: web.url, sha256: '0'.repeat(64), path: '/server.gz' },
      { do: 'write', path: '/later', text: 'x' },
    ]
    await assert.rejects(harness.install(S, { steps }), (error) => isFailure(error, 'checksum_mismatch'))
    assert.deepEqual(readdirSync(harness.filesOf(S)), ['start'])
  })

  test("A script is refused where the server's runtime is a process, before anything is touched.", async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const steps = [{ do: 'write' as const, path: '/early', text: 'x' }, SCRIPT]
    await assert.rejects(harness.install(S, { steps, wipe: true }), (error) => isFailure(error, 'install_failed'))
    assert.deepEqual(readdirSync(harness.filesOf(S)), ['start'])
  })

  test('what no container gets is refused for a program of an installation too, before anything is touched', async () => {
    await using harness = await openGames({ options: { containerSocket: '/nowhere' } })
    await harness.create(S, 'plain')
    const plain = { image: 'game', directory: '/data', capabilities: [], installer: null }
    for (const change of [{ capabilities: ['SYS_ADMIN'] }, { capabilities: ['SETUID'] }, { directory: '/' }]) {
      const launch = { container: { ...plain, ...change } }
      await assert.rejects(harness.install(S, { steps: [shell('true')], wipe: true, change: launch }), (error) =>
        isFailure(error, 'not_startable'),
      )
    }
    assert.deepEqual(readdirSync(harness.filesOf(S)), ['start'])
  })

  test('a wipe moves everything to the trash, and a program that fails is told with its code', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const failing = harness.install(S, { steps: [shell('echo no; exit 3')], wipe: true })
    await assert.rejects(failing, (error) => isFailure(error, 'install_failed') && /exit code 3/.test(error.detail))
    assert.deepEqual(readdirSync(harness.filesOf(S)), [])
    const trash = join(harness.filesOf(S), '..', 'trash')
    assert.ok(readdirSync(trash, { recursive: true }).length > 0)
    assert.ok((await harness.linesOf(S)).includes('The installation failed in step 1 of 1, run sh.'))
  })

  test('a game that runs is not installed over, and does not start while it is being installed', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    await assert.rejects(harness.install(S, { steps: [] }), (error) => isFailure(error, 'server_running'))
    await harness.power(S, 'stop')
    await harness.reach(S, 'stopped')
    const going = join(harness.filesOf(S), 'go')
    const installing = harness.install(S, { steps: [shell('touch begun; until [ -e go ]; do sleep 0.05; done')] })
    await until(async () => existsSync(join(harness.filesOf(S), 'begun')))
    await assert.rejects(harness.power(S, 'start'), (error) => isFailure(error, 'server_busy'))
    await assert.rejects(harness.install(S, { steps: [] }), (error) => isFailure(error, 'server_busy'))
    assert.throws(
      () => harness.games.requireStopped(S),
      (error) => isFailure(error, 'server_busy'),
    )
    writeFileSync(going, '')
    await installing
    assert.equal(await harness.power(S, 'start'), true)
  })

  test('whoever cancels ends the program, and the next task begins anew', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const abort = new AbortController()
    const steps = [shell('echo run >> runs; touch begun; exec sleep 600')]
    const installing = harness.install(S, { steps, signal: abort.signal })
    await until(async () => existsSync(join(harness.filesOf(S), 'begun')))
    abort.abort()
    await assert.rejects(installing)
    assert.equal(harness.games.isRunning(S), false)
    await harness.install(S, { steps: [shell('echo again >> runs')], taskId: 'job_other' })
    assert.equal(readFileSync(join(harness.filesOf(S), 'runs'), 'utf8'), 'run\nagain\n')
  })

  test('a program whose kill is not taken keeps its files until it has ended, and the service from nothing', async () => {
    const timers = createManualTimers()
    let isAway = true
    let tries = 0
    let told: RunEvents | undefined
    const end = { code: null, signal: 'SIGKILL' as const, isOutOfMemory: false, at: 1, saidStop: false, lastLine: null }
    const run = {
      async kill() {
        tries++
        if (isAway) throw new Error('the engine does not answer')
        told?.ended({ ...end, wasReady: false })
      },
      detach() {},
    } as unknown as Run
    const started: string[] = []
    const runtime: GameRuntime = {
      check: async () => {},
      async start({ runId }, events) {
        started.push(runId)
        told = events
        return { run, runtime: null as never }
      },
      async find(_, events) {
        told = events
        return run
      },
    }
    await using harness = await openGames({ timers, runtime })
    await harness.create(S, 'plain')
    const begin = async (taskId: string, count: number) => {
      const cancel = new AbortController()
      const stopping = new AbortController()
      const installing = harness.install(S, {
        ...{ steps: [shell('true')], taskId, signal: cancel.signal, stopping: stopping.signal },
      })
      installing.catch(() => {})
      await until(async () => started.length === count)
      cancel.abort()
      await until(async () => tries > 0)
      return { installing, stopping }
    }
    const first = await begin('job_first', 1)
    timers.advance(1000)
    await until(async () => tries === 2)
    await assert.rejects(harness.power(S, 'start'), (error) => isFailure(error, 'server_busy'))
    isAway = false
    timers.advance(1000)
    await assert.rejects(first.installing, { name: 'AbortError' })

    isAway = true
    tries = 0
    const second = await begin('job_second', 2)
    second.stopping.abort()
    await assert.rejects(second.installing)
    await assert.rejects(harness.install(S, { steps: [shell('true')], taskId: 'job_third' }))
    assert.equal(started.length, 2, 'not beside one that may be writing')
    assert.equal(harness.errors.length, 2, 'said once for each')
    isAway = false
  })

  test('what was done before a crash is not done again', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const steps = [shell('echo first >> runs'), shell('echo second >> runs')]
    const record = { taskId: 'job_install', isWiped: true, stepsDone: 1, runId: 'run_00000000000000000000000000' }
    await harness.install(S, { steps: [], taskId: 'job_earlier' })
    writeFileSync(join(harness.filesOf(S), '..', 'game', 'install.json'), JSON.stringify(record))
    await harness.install(S, { steps, wipe: true })
    assert.equal(readFileSync(join(harness.filesOf(S), 'runs'), 'utf8'), 'second\n')
    assert.ok(existsSync(join(harness.filesOf(S), 'start')), 'it was wiped before the crash')
  })
})

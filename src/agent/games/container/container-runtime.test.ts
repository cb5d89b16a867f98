// The container adapter on a real Podman.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { needsPodman, type Podman, startPodman } from '../../../../test/support/podman.ts'
import { until } from '../../../../test/support/until.ts'
import { isFailure } from '../../../contract/errors.ts'
import { type GamesHarness, type HarnessOptions, NO_LIMITS, openGames } from '../games.testing.ts'
import { groupFoldersOf } from '../process/cgroups.ts'
import { isAlive, signalGroup } from '../process-identity.ts'
import { readRunUsage } from '../run-usage.ts'
import { ledRunOf, runOf, runtimeContract } from '../runtime.contract.ts'

const S = 'srv_castle'
const skipped = needsPodman()
let podman: Podman
before(async () => {
  if (!skipped.skip) podman = await startPodman()
})
after(() => podman?.[Symbol.asyncDispose]())

const containerOf = (change = {}) => ({
  ...{ image: podman.image, directory: '/data', capabilities: [], installer: null },
  ...change,
})
const open = (options: HarnessOptions = {}) =>
  openGames({ ...options, options: { containerSocket: podman.socket }, launch: { container: containerOf() } })

runtimeContract('container', skipped, {
  kind: 'container',
  isolation: 'container',
  open,
  ownNames: ['HOSTNAME', 'container'],
})

const ticksOf = async (harness: GamesHarness) => {
  const { lines } = await harness.games.readConsole({ serverId: S, before: null, limit: 100_000, q: 'tick ' })
  return lines.map(({ text }) => Number(text.split(' ')[1])).reverse()
}
const inOrder = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

suite('containers', skipped, () => {
  test('a game gets a read-only root, no capabilities and no new privileges, and is held to its limits', async () => {
    await using harness = await open()
    await harness.create(S, 'plain')
    const limits = { memoryBytes: 128 * 1024 * 1024, cpuPercent: 50, processes: 30 }
    await harness.power(S, 'start', { environment: { MOTD: 'a b' } }, limits)
    await harness.reach(S, 'running')
    const [made] = JSON.parse((await podman.podman('inspect', `gamekeeper-${runOf(harness).runId}`)).stdout)
    const { HostConfig: host, Config: config } = made
    assert.deepEqual([host.Memory, host.PidsLimit, host.ReadonlyRootfs], [limits.memoryBytes, 30, true])
    assert.deepEqual([host.NanoCpus || (host.CpuQuota / host.CpuPeriod) * 1e9, made.EffectiveCaps ?? []], [5e8, []])
    assert.ok(host.SecurityOpt.includes('no-new-privileges'))
    assert.equal(host.Init, true, 'Podman does not say that it has one')
    assert.equal(config.Labels['gamekeeper.server'], S)
    assert.ok(config.Env.includes('MOTD=a b'))
    const { pid } = (await ledRunOf(harness)).game
    const used = readRunUsage(pid, groupFoldersOf(pid))
    assert.ok(
      used.memoryBytes && used.memoryBytes < limits.memoryBytes && used.networkSentBytes !== null,
      'its own alone',
    )
    const user = (await harness.games.read({ serverId: S })).runtime?.user
    assert.equal(config.User, `${user}:${user}`)
    assert.notEqual(user, 0)
  })

  test('a line for a shell runs in the container, and values reach it by the environment only', async () => {
    await using harness = await open()
    await harness.create(S, 'plain')
    const shellLine = 'echo "name: $NAME" && echo "Done (" && read line'
    const NAME = '$(touch /data/written); `id` "quoted"'
    await harness.power(S, 'start', { argv: ['sh', '-c', shellLine], shellLine, environment: { NAME } })
    await harness.reach(S, 'running')
    assert.ok((await harness.linesOf(S)).includes(`name: ${NAME}`))
    assert.equal(existsSync(join(harness.filesOf(S), 'written')), false)
  })

  test('what a template must not ask for is refused before anything is made', async () => {
    await using harness = await open()
    await harness.create(S, 'plain')
    for (const change of [{ capabilities: ['SYS_ADMIN'] }, { image: '--privileged' }, { directory: '/' }])
      await assert.rejects(harness.power(S, 'start', { container: containerOf(change) }), (error) =>
        isFailure(error, 'not_startable'),
      )
    assert.equal((await podman.podman('ps', '--all', '--quiet')).stdout, '')
  })

  test('An image that is there is used as it is, also when the registry does not answer.', async () => {
    await using harness = await open({ autoRestart: false })
    await harness.create(S, 'plain')
    // A registry that nobody runs has this one: it was tagged here.
    const image = 'localhost:1/games/plain:latest'
    await podman.podman('tag', podman.image, image)
    await harness.power(S, 'start', { container: containerOf({ image }) })
    await harness.reach(S, 'running')
    await harness.power(S, 'kill')
    await harness.reach(S, 'stopped')
    await harness.power(S, 'start', { container: containerOf({ image: 'localhost:1/games/absent:latest' }) })
    await harness.reach(S, 'crashed')
    const lines = await harness.linesOf(S)
    assert.ok(lines.some((line) => line.startsWith('The image localhost:1/games/absent:latest could not be used: ')))
  })

  test('while an image is pulled, the step says so, and a kill ends it', async () => {
    await using harness = await open()
    await harness.create(S, 'plain')
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const image = `localhost:${(silent.address() as AddressInfo).port}/games/slow:latest`
    await harness.power(S, 'start', { container: containerOf({ image }) })
    await until(async () => (await harness.games.read({ serverId: S })).power.step === `pulling ${image}`)
    assert.equal((await harness.games.read({ serverId: S })).power.state, 'starting')
    assert.equal(await harness.power(S, 'kill'), true)
    await harness.reach(S, 'stopped')
    assert.equal((await harness.games.read({ serverId: S })).power.exit?.reason, 'killed')
    silent.close()
  })

  test('the API of the engine goes away and comes back: the game goes on, and its end is seen', async () => {
    await using harness = await open()
    await harness.create(S, 'ticking')
    await harness.power(S, 'start', { ready: ['tick 3'] })
    await harness.reach(S, 'running')
    await podman.stopService()
    const before = (await ticksOf(harness)).length
    await until(async () => (await ticksOf(harness)).length > before + 20)
    await harness.games.sendCommand({ serverId: S, command: 'hello' })
    await until(async () => (await harness.linesOf(S)).includes('heard hello'))
    await podman.startService()
    await harness.power(S, 'stop')
    await harness.reach(S, 'stopped')
    const exit = (await harness.games.read({ serverId: S })).power.exit
    assert.deepEqual([exit?.reason, exit?.code], ['requested', 0])
    const ticks = await ticksOf(harness)
    assert.deepEqual(ticks, inOrder(ticks.length))
  })

  test('a supervisor that was killed has a successor, and the game does not notice', async () => {
    await using harness = await open()
    await harness.create(S, 'ticking')
    await harness.power(S, 'start', { ready: ['tick 3'] })
    await harness.reach(S, 'running')
    const { supervisor, game } = await ledRunOf(harness)
    assert.ok(signalGroup(supervisor, 'SIGKILL'))
    await until(async () => isAlive(runOf(harness).supervisor))
    const before = (await ticksOf(harness)).length
    await until(async () => (await ticksOf(harness)).length > before + 20)
    assert.ok(isAlive(game))
    assert.equal((await harness.games.read({ serverId: S })).power.state, 'running')
    await harness.power(S, 'stop')
    await harness.reach(S, 'stopped')
    const exit = (await harness.games.read({ serverId: S })).power.exit
    assert.deepEqual([exit?.reason, exit?.code], ['requested', 0])
    assert.ok(exit?.lastLine, 'as the successor wrote it down')
    const ticks = await ticksOf(harness)
    const steps = ticks.map((tick, index) => tick - (ticks[index - 1] ?? 0))
    assert.ok(steps.every((step) => step > 0))
    // Only what it had read and not yet written in that moment is lost.
    assert.ok(steps.filter((step) => step > 1).length <= 1, ticks.join(' '))
  })

  test('a service that was killed while it made a container makes another, and nothing is left of the first', async () => {
    await using harness = await open()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    const { runId } = runOf(harness)
    // As it is between `create` and `start`: the record is there, and the container does not run.
    harness.edit(S, (record) => ({ ...record, power: { ...record.power, state: 'starting' } }))
    await podman.podman('rm', '--force', '--time', '0', `gamekeeper-${runId}`)
    await podman.podman(
      'create',
      '--name',
      `gamekeeper-${runId}`,
      '--label',
      `gamekeeper.server=${S}`,
      podman.image,
      'sh',
    )
    await harness.restart()
    await harness.reach(S, 'running')
    assert.equal((await podman.podman('ps', '--all', '--quiet')).stdout.trim().split('\n').length, 1)
    assert.notEqual(runOf(harness).runId, runId)
  })

  test('a script installs in an image of its own, as root inside, and the game runs as its user afterwards', async () => {
    await using harness = await open()
    await harness.create(S, 'plain')
    const text = [
      'set -e',
      'cd /mnt/server',
      'echo "installing $NAME"',
      'id -u > uid',
      'mkdir -p deep && cat start > deep/start',
      'touch /anywhere',
    ].join('\n')
    const steps = [{ do: 'script' as const, image: podman.image, entrypoint: 'sh', text }]
    await harness.install(S, { steps, change: { environment: { NAME: '$(id)' } } })
    assert.ok((await harness.linesOf(S)).includes('installing $(id)'))
    assert.equal(readFileSync(join(harness.filesOf(S), 'uid'), 'utf8'), '0\n')
    writeFileSync(join(harness.filesOf(S), 'start'), '#!/bin/sh\nid -u >> uid\necho "Done ("\nread line\n')
    await harness.power(S, 'start', {}, NO_LIMITS)
    await harness.reach(S, 'running')
    assert.match(readFileSync(join(harness.filesOf(S), 'uid'), 'utf8'), /^0\n19000\d{5}\n$/)
  })
})

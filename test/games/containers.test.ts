// An egg from import to play, through the front door: a real service process, a real Podman.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, suite, test } from 'node:test'
import { sendCall } from '../support/call.ts'
import { endGames } from '../support/games.ts'
import { needsPodman, type Podman, startPodman } from '../support/podman.ts'
import { killLeftovers, type ServiceProcess, spawnService } from '../support/process.ts'
import { rehearsalUnderWay } from '../support/rehearsals.ts'
import { until } from '../support/until.ts'

/** Counts, says hello to whoever connects, and stops when it is told to. */
const GAME = `
use IO::Socket::INET; use IO::Select; $| = 1;
my $door = IO::Socket::INET->new(Listen => 5, LocalPort => $ENV{SERVER_PORT}, ReuseAddr => 1) or die $!;
my $all = IO::Select->new($door, \\*STDIN); my $n = 0;
while (1) {
  print "tick ", ++$n, "\\n";
  for my $ready ($all->can_read(0.01)) {
    if ($ready == $door) { my $who = $door->accept; print $who "hello from $ENV{WORLD}\\n"; close $who; next }
    sysread(STDIN, my $line, 4096) or exit 9; print "heard $line"; next if $line !~ /^stop/;
    open my $net, '<', '/proc/net/dev'; my $alone = (grep { /:/ } <$net>) == 1 ? 'alone' : 'and more';
    print "bye from $ENV{HOME}, with its loopback $alone\\n"; exit 0;
  }
}
`

const eggOf = (image: string) => ({
  meta: { version: 'PTDL_v2' },
  name: 'Hello',
  docker_images: { Perl: image },
  startup: 'cd . && exec perl game.pl',
  config: { files: '{}', startup: '{"done": "tick 3"}', logs: '{}', stop: 'stop' },
  scripts: {
    installation: {
      container: image,
      entrypoint: 'sh',
      script: `#!/bin/sh\ncd /mnt/server\necho "installing \${WORLD}"\ncat > game.pl <<'END'\n${GAME}\nEND\n`,
    },
  },
  variables: [
    {
      name: 'World',
      env_variable: 'WORLD',
      default_value: 'overworld',
      user_viewable: true,
      user_editable: true,
      rules: 'required|string',
    },
  ],
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

suite('an egg', needsPodman(), () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-egg-'))
  const adminToken = `gk_admin_${randomBytes(32).toString('hex')}`
  let podman: Podman
  let service: ServiceProcess
  const start = () =>
    spawnService({
      GAMEKEEPER_DATA_DIR: dataDir,
      GAMEKEEPER_ADMIN_TOKEN: adminToken,
      GAMEKEEPER_CONTAINER_SOCKET: podman.socket,
    })
  before(async () => {
    podman = await startPodman()
    service = await start()
  })
  after(async () => {
    killLeftovers()
    endGames(dataDir)
    await podman?.[Symbol.asyncDispose]()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const call = (method: string, path: string, body?: object) =>
    sendCall(service.url, adminToken, method, path, body === undefined ? {} : { body })

  test('is imported, installed by its script, started, reached by its port, rehearsed, and outlives a SIGKILL of the service', async () => {
    const imported = await call('POST', '/templates', eggOf(podman.image))
    assert.equal(imported.status, 201, imported.text)
    const port = await freePort()
    const made = await call('POST', '/servers', { name: 'Castle', game: imported.body.template.id, port })
    assert.equal(made.body.runtime.kind, 'container')
    const { id } = made.body
    const stateOf = async () => (await call('GET', `/servers/${id}`)).body
    const linesOf = async (query = '') =>
      (await call('GET', `/servers/${id}/console?limit=500${query}`)).body.data.reverse()

    const finished = (job: { id: string }) =>
      until(async () => {
        const { body } = await call('GET', `/servers/${id}/jobs/${job.id}`)
        return ['completed', 'failed'].includes(body.status) && body
      })
    const done = await finished((await call('POST', `/servers/${id}/install`)).body)
    assert.equal(done.status, 'completed', done.error?.detail)
    assert.equal((await linesOf('&q=installing%20overworld')).length, 1)

    const power = (action: string) => call('POST', `/servers/${id}/power`, { action })
    const started = await power('start')
    assert.equal(started.status, 202, started.text)
    await until(async () => (await stateOf()).power.state === 'running')
    const { runtime } = await stateOf()
    assert.deepEqual([runtime.kind, runtime.image, runtime.isolation], ['container', podman.image, 'container'])
    assert.deepEqual(runtime.enforced, { memory: 'cgroup', cpu: 'cgroup', processes: 'cgroup' })
    assert.equal(await text(connect(port, '127.0.0.1')), 'hello from overworld\n')
    const changed = await call('PATCH', `/servers/${id}`, { runtime: { kind: 'container', image: 'debian:12' } })
    assert.deepEqual([changed.status, changed.body.code], [409, 'server_running'])

    const rehearsal = `/backups/${id}/${(await call('POST', `/backups/${id}`, {})).body.id}`
    await until(async () => (await call('GET', rehearsal)).body.status === 'completed')
    const rehearsing = (await call('POST', `${rehearsal}/rehearse`, {})).body
    await rehearsalUnderWay(dataDir, id)

    await service.kill('SIGKILL')
    service = await start()
    assert.equal((await stateOf()).power.state, 'running')
    assert.equal((await finished(rehearsing)).status, 'completed')
    const { outcome, reason, log } = (await call('GET', `${rehearsal}/rehearsal`)).body
    assert.deepEqual(
      [outcome, reason, log.at(-2)],
      ['passed', null, 'bye from /home/container, with its loopback alone'],
    )
    assert.equal(await text(connect(port, '127.0.0.1')), 'hello from overworld\n', 'its server was not touched')
    const containers = (await podman.podman('ps', '--all', '--quiet')).stdout.trim().split('\n')
    assert.deepEqual([containers.length, existsSync(join(dataDir, 'rehearsals'))], [1, false])
    await call('POST', `/servers/${id}/console`, { command: 'still there?' })
    await until(async () => (await linesOf('&q=heard%20still')).length === 1)
    assert.equal((await power('stop')).status, 202)
    await until(async () => (await stateOf()).power.state === 'stopped')
    const { exit } = (await stateOf()).power
    assert.deepEqual([exit.reason, exit.code], ['requested', 0])
    const lines = await linesOf('&q=tick')
    const ticks = lines.map((line: { text: string }) => Number(line.text.split(' ')[1]))
    assert.deepEqual(
      ticks,
      ticks.map((_: number, index: number) => ticks[0] + index),
    )
    await until(async () => (await podman.podman('ps', '--all', '--quiet')).stdout === '')
    await service.kill('SIGTERM')
  })
})

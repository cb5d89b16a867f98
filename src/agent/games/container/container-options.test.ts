// What no container gets, on the one way that everything goes that is started in one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { launchOf, QUIESCE } from '../../../../test/support/games.ts'
import { isFailure } from '../../../contract/errors.ts'
import { NO_LIMITS } from '../games.testing.ts'
import { containerOptions } from './container-options.ts'
import { type ContainerRuntimeDeps, createContainerRuntime } from './container-runtime.ts'

test('what a template must not ask for is refused however it is started, before an engine is asked', async () => {
  const runtime = createContainerRuntime({ gameFolder: () => '/nowhere' } as unknown as ContainerRuntimeDeps)
  const events = { ready() {}, lines() {}, ended() {} }
  const plain = { image: 'game', directory: '/data', capabilities: [], installer: null }
  // By the last three a game could make itself root, or leave a program of root's among the files of its server.
  const refused = ['SYS_ADMIN', 'SYS_MODULE', 'SETUID', 'CHOWN', 'DAC_OVERRIDE'].map((name) => ({
    capabilities: [name],
  }))
  for (const change of [...refused, { image: '--privileged' }, { directory: '/' }]) {
    const launch = launchOf({ container: { ...plain, ...change } })
    const request = { serverId: 'srv_castle', runId: 'run_1', launch, limits: NO_LIMITS }
    await assert.rejects(runtime.start(request, events), (error) => isFailure(error, 'not_startable'))
  }
})

test('In a container, that port is published on 127.0.0.1 only', () => {
  const remote = { via: 'rcon', port: 25575, secret: 'secret' } as const
  const ports = [
    { name: 'game', protocol: 'udp' as const, port: 25575 },
    { name: 'rcon', protocol: 'tcp' as const, port: 25575 },
    { name: 'web', protocol: 'tcp' as const, port: 8080 },
  ]
  const container = { image: 'game', directory: '/data', capabilities: [], installer: null }
  const { HostConfig } = containerOptions({
    ...{ serverId: 'srv_castle', runId: 'run_1', label: 'x', limits: NO_LIMITS, container, isRoot: true, info: {} },
    ...{ filesFolder: '/files', pipesFolder: '/pipes', user: { uid: 1000, gid: 1000 } },
    ownLimits: { openFiles: 1024, processes: 1024 },
    launch: launchOf({ ports, quiesce: { ...QUIESCE, remote } }),
  })
  assert.deepEqual(HostConfig?.PortBindings, {
    '25575/udp': [{ HostPort: '25575' }],
    '25575/tcp': [{ HostPort: '25575', HostIp: '127.0.0.1' }],
    '8080/tcp': [{ HostPort: '8080' }],
  })
})

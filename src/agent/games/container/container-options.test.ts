// What no container gets, on the one way that everything goes that is started in one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { launchOf } from '../../../../test/support/games.ts'
import { isFailure } from '../../../contract/errors.ts'
import { NO_LIMITS } from '../games.testing.ts'
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

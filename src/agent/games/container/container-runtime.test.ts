// The container adapter on a real Podman.
import { after, before } from 'node:test'
import { needsPodman, type Podman, startPodman } from '../../../../test/support/podman.ts'
import { type HarnessOptions, openGames } from '../games.testing.ts'
import { runtimeContract } from '../runtime.contract.ts'

const skipped = needsPodman()
let podman: Podman
before(async () => {
  if (!skipped.skip) podman = await startPodman()
})
after(() => podman?.[Symbol.asyncDispose]())

const open = (options: HarnessOptions = {}) =>
  openGames({
    ...options,
    options: { containerSocket: podman.socket },
    launch: { container: { image: podman.image, directory: '/data', capabilities: [], installer: null } },
  })

runtimeContract('container', skipped, {
  kind: 'container',
  isolation: 'container',
  open,
  ownNames: ['HOSTNAME', 'container'],
})

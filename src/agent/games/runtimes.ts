// Both adapters of the runtime port as one: a launch says which of them runs it, and the disk which of them ran it.
import { dirname } from 'node:path'
import { layout as layoutOf } from '../layout.ts'
import { createContainerRuntime } from './container/container-runtime.ts'
import { createEngine } from './container/engine.ts'
import type { GamesDeps } from './games-deps.ts'
import { createGameUsers } from './process/game-users.ts'
import { createProcessRuntime } from './process/process-runtime.ts'
import { createUserIsolation } from './process/user-isolation.ts'
import type { GameRuntime } from './runtime.ts'

type Folders = Record<'gameFolder' | 'consoleFolder', (serverId: string) => string>

export function createRuntimes(deps: Omit<GamesDeps, 'runtime'>, folders: Folders): GameRuntime {
  const { layout, options } = deps
  const place = {
    ...folders,
    server: deps.files.server,
    users: createGameUsers({ layout, range: options.users, others: [layoutOf(layout.rehearsals)] }),
    onUnexpected: deps.onUnexpected,
  }
  const process = createProcessRuntime({
    ...place,
    hidden: [dirname(layout.servers), ...options.keyFiles],
    userIsolation: createUserIsolation(layout),
    ...(deps.findBubblewrap ? { findBubblewrap: deps.findBubblewrap } : {}),
    allowUnisolated: options.allowUnisolated,
    keepsSupervisorReady: options.keepsSupervisorReady,
  })
  const container = createContainerRuntime({ ...place, engine: createEngine(options.containerSocket) })
  return {
    check: (request) => (request.launch.container ? container : process).check(request),
    start: (request, events) => (request.launch.container ? container : process).start(request, events),
    find: (request, events) => (container.isOwn(request) ? container : process).find(request, events),
  }
}

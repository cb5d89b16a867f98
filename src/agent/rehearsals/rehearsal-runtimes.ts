// What plays a game in a rehearsal: the runtimes that play it in its server, in a network that has nothing but its loopback.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Launch } from '../../contract/games/launch.ts'
import type { ServerFiles } from '../files/server-files.ts'
import { createContainerRuntime } from '../games/container/container-runtime.ts'
import { createEngine } from '../games/container/engine.ts'
import type { GamesOptions } from '../games/games-deps.ts'
import { createGameUsers } from '../games/process/game-users.ts'
import { createProcessRuntime } from '../games/process/process-runtime.ts'
import { type GameRuntime, hasEnded } from '../games/runtime.ts'
import { type Layout, layout as layoutOf } from '../layout.ts'

/** Of a container: one that has that of its server would be ended with those of the server, and the other way round. */
const REHEARSAL_LABEL = 'gamekeeper.rehearsal'

/** A user of its own is not enough here. */
const NO_NETWORK_OF_ITS_OWN = { whyNot: () => 'a rehearsal needs a network of its own', prepare() {} }

export interface RehearsedRun {
  serverId: string
  runId: string
}

export interface RehearsalRuntimes {
  /** Whoever is there, a game is ended after `killAfterMs`. */
  of(launch: Launch, server: ServerFiles, killAfterMs: number): GameRuntime
  /** Also of an earlier service, and one that was only about to be started. Nothing is left of it. */
  end(run: RehearsedRun): Promise<void>
  consoleFolder(serverId: string): string
}

export function createRehearsalRuntimes(deps: {
  layout: Layout
  options: GamesOptions
  findBubblewrap: () => Promise<string | null>
  onUnexpected(error: unknown, serverId: string): void
}): RehearsalRuntimes {
  const { layout, options, onUnexpected } = deps
  const scratch = layoutOf(layout.rehearsals)
  const gameFolder = (serverId: string) => join(scratch.server(serverId).root, 'game')
  const consoleFolder = (serverId: string) => join(scratch.server(serverId).root, 'console')
  const engine = createEngine(options.containerSocket)

  function runtimesOf(server: () => ServerFiles, killAfterMs: number) {
    const users = createGameUsers({ layout: scratch, range: options.users, others: [layout] })
    const place = { server, gameFolder, consoleFolder, users, killAfterMs, onUnexpected }
    return {
      process: createProcessRuntime({
        ...place,
        hidden: [dirname(layout.servers), ...options.keyFiles],
        userIsolation: NO_NETWORK_OF_ITS_OWN,
        findBubblewrap: deps.findBubblewrap,
        allowUnisolated: false,
        network: 'loopback',
      }),
      container: createContainerRuntime({ ...place, engine, label: REHEARSAL_LABEL, network: 'none' }),
    }
  }

  return {
    consoleFolder,
    of: (launch, server, killAfterMs) =>
      runtimesOf(() => server, killAfterMs)[launch.container ? 'container' : 'process'],

    async end(run) {
      if (!existsSync(gameFolder(run.serverId))) return
      const { process, container } = runtimesOf(noFiles, 0)
      if (container.isOwn(run)) return container.discard(run)
      const found = await process.find(run, { ready() {}, lines() {}, ended() {} })
      if (found === 'lost' || hasEnded(found)) return
      using _found = { [Symbol.dispose]: () => found.detach() }
      await found.kill()
    },
  }
}

function noFiles(): never {
  throw new Error('nothing is started here')
}

// What plays a game in a rehearsal: the runtimes that play it in its server, in a network that has nothing but its loopback.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Launch } from '../../contract/games/launch.ts'
import { readRecord } from '../../kit/files/durable-record.ts'
import type { ServerFiles } from '../files/server-files.ts'
import { createContainerRuntime } from '../games/container/container-runtime.ts'
import { createEngine } from '../games/container/engine.ts'
import type { GamesOptions } from '../games/games-deps.ts'
import { createGameUsers } from '../games/process/game-users.ts'
import { createProcessRuntime } from '../games/process/process-runtime.ts'
import { signalGroup } from '../games/process-identity.ts'
import { type GameRuntime, hasEnded } from '../games/runtime.ts'
import { type RunRecord, runFile } from '../games/supervisor/protocol.ts'
import { type Layout, layout as layoutOf } from '../layout.ts'
import { createLeftContainers } from './left-containers.ts'

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
  /**
   * Also of an earlier service, and one that was only about to be started. Nothing is left of it, but for a container whose
   * engine is away: that is noted, and removed when the engine is back.
   */
  end(run: RehearsedRun): Promise<void>
  /** Removes what earlier services have noted. Never fails, and does not wait for an engine that is away. */
  removeLeft(): Promise<void>
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
  const left = createLeftContainers({
    ...{ file: layout.leftContainers, engine },
    onUnexpected: (error) => onUnexpected(error, ''),
  })

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
    removeLeft: left.remove,
    of: (launch, server, killAfterMs) =>
      runtimesOf(() => server, killAfterMs)[launch.container ? 'container' : 'process'],

    async end(run) {
      if (!existsSync(gameFolder(run.serverId))) return
      const { process, container } = runtimesOf(noFiles, 0)
      if (container.isOwn(run)) {
        left.add(run.runId)
        endByKernel(join(gameFolder(run.serverId), runFile(run.runId)))
        return await left.remove()
      }
      const found = await process.find(run, { ready() {}, lines() {}, ended() {} })
      if (found === 'lost' || hasEnded(found)) return
      using _found = { [Symbol.dispose]: () => found.detach() }
      await found.kill()
    },
  }
}

/** The engine may be away, and the game is to write no more. */
function endByKernel(file: string): void {
  const record = readRecord<RunRecord>(file)
  if (!record) return
  if (record.game) signalGroup(record.game, 'SIGKILL')
  signalGroup(record.supervisor, 'SIGKILL')
}

function noFiles(): never {
  throw new Error('nothing is started here')
}

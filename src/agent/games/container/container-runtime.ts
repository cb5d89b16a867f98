// The container adapter of the runtime port: a game is a container of an engine on this machine, with a supervisor beside it
// that has its input and output.
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fail, isFailure } from '../../../contract/errors.ts'
import type { Launch, LaunchContainer } from '../../../contract/games/launch.ts'
import { readRecord, writeRecord } from '../../../kit/files/durable-record.ts'
import type { ServerFiles } from '../../files/server-files.ts'
import type { GameUsers } from '../process/game-users.ts'
import type { GameUser } from '../process/isolation.ts'
import { checkSurroundings } from '../process/preflight.ts'
import { bootId, signalGroup } from '../process-identity.ts'
import type { GameRuntime, Run, RunEnd, RunEvents, StartRequest } from '../runtime.ts'
import { exitFile, type RunRecord, runFile } from '../supervisor/protocol.ts'
import { checkContainer, containerName, containerOptions, runtimeOf, SERVER_LABEL } from './container-options.ts'
import { createContainerRun } from './container-run.ts'
import { createContainerStart } from './container-start.ts'
import { type ContainerState, type Engine, isUnreachable, saidByEngine } from './engine.ts'
import { makePipes, readOwnLimits } from './pipes.ts'

export interface ContainerRuntimeDeps {
  engine: Engine
  server(serverId: string): ServerFiles
  gameFolder(serverId: string): string
  consoleFolder(serverId: string): string
  users: GameUsers
  /** By which the containers of a server are found; that of servers by default. */
  label?: string
  /** That of the engine by default. */
  network?: 'none'
  /** A game that runs for longer is killed by its supervisor, also when no service is there any more. */
  killAfterMs?: number
  onUnexpected(error: unknown, serverId: string): void
}

export interface ContainerRuntime extends GameRuntime {
  /** Whether it was this one that started it. */
  isOwn(request: { serverId: string; runId: string }): boolean
}

/** `container-<id>.json`, before there is anything else of the run. */
interface ContainerRecord {
  bootId: string
  ready: Launch['ready']
  stopsByItself: Launch['stopsByItself']
}

/** One that answers later is asked again while the game goes on. */
const FOUND_WITHIN_MS = 5000

/** Whoever wants to start a game waits for it. */
const CHECKED_WITHIN_MS = 10_000

const recordFile = (runId: string) => `container-${runId}.json`

export function createContainerRuntime(deps: ContainerRuntimeDeps): ContainerRuntime {
  const { engine, label = SERVER_LABEL } = deps
  const startContainer = createContainerStart(engine)

  async function userOf(serverId: string): Promise<GameUser> {
    const user = await deps.users.assign(serverId)
    if (user) await deps.users.giveFiles(serverId, user)
    return user ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
  }

  /** Of runs that have ended: a run is started only when there is no other. */
  async function removeOldRuns(serverId: string, folder: string): Promise<void> {
    for (const id of await engine.list(`${label}=${serverId}`)) await engine.remove(id)
    for (const name of readdirSync(folder).filter((entry) => /^(?:run|exit|container|pipes)-run_/.test(entry))) {
      const record = name.startsWith('run-') ? readRecord<RunRecord>(join(folder, name)) : undefined
      if (record) signalGroup(record.supervisor, 'SIGKILL')
      rmSync(join(folder, name), { recursive: true, force: true })
    }
  }

  function runOf(serverId: string, runId: string, record: ContainerRecord, isStarted: boolean, events: RunEvents) {
    const folder = deps.gameFolder(serverId)
    const { ready, stopsByItself } = record
    return createContainerRun({
      ...{ engine, start: startContainer, folder },
      order: {
        ...{ runId, ready, stopsByItself },
        consoleFolder: deps.consoleFolder(serverId),
        pipesFolder: join(folder, `pipes-${runId}`),
        ...(deps.killAfterMs === undefined ? {} : { killAfterMs: deps.killAfterMs }),
      },
      isStarted,
      events,
      onUnexpected: (error) => deps.onUnexpected(error, serverId),
    })
  }

  async function start({ serverId, runId, launch, limits }: StartRequest, events: RunEvents) {
    const container = requireContainer(launch)
    // A program of an installation comes here without a check before it.
    checkContainer(container)
    const folder = deps.gameFolder(serverId)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const info = await engine.info()
    await removeOldRuns(serverId, folder)
    const user = await userOf(serverId)
    const pipesFolder = join(folder, `pipes-${runId}`)
    const filesFolder = deps.server(serverId).folders.files
    const isRoot = process.getuid?.() === 0
    const request = {
      ...{ serverId, runId, launch, container, limits, user, isRoot, info, label },
      filesFolder,
      pipesFolder,
    }
    const options = containerOptions({ ...request, network: deps.network, ownLimits: readOwnLimits() })
    const record = { bootId: bootId(), ready: launch.ready, stopsByItself: launch.stopsByItself }
    writeRecord(join(folder, recordFile(runId)), record)
    await makePipes(pipesFolder, container.installer?.script ?? null)
    const run = runOf(serverId, runId, record, false, events)
    const hasImage = await engine.hasImage(container.image)
    await run.attach()
    if (hasImage) {
      await run.launch(options).catch(async (error: unknown) => {
        try {
          await run.discard()
        } catch (fault) {
          deps.onUnexpected(fault, serverId)
          return run.giveUp()
        }
        throw isFailure(error) ? error : fail('not_startable', `The engine says: ${saidByEngine(error)}`, error)
      })
    } else run.launchLater(container.image, options)
    run.handOver()
    return { run, runtime: runtimeOf(container, user, info) }
  }

  async function find(
    { serverId, runId }: { serverId: string; runId: string },
    events: RunEvents,
  ): Promise<Run | RunEnd | 'lost'> {
    const folder = deps.gameFolder(serverId)
    const record = readRecord<ContainerRecord>(join(folder, recordFile(runId)))
    const end = readRecord<RunEnd>(join(folder, exitFile(runId)))
    if (end) return end
    // With the machine they ended, and the next start removes what is left of them.
    if (!record || record.bootId !== bootId()) return 'lost'
    const state = await stateOf(runId)
    if (state === 'unknown') return await takeUp()
    if (!state || state.status === 'created') {
      await discard({ serverId, runId })
      return 'lost'
    }
    const run = await takeUp()
    return state.status === 'ended' ? await run.settle(state) : run

    async function takeUp() {
      const found = runOf(serverId, runId, record as ContainerRecord, true, events)
      await found.attach()
      if (state === 'unknown' || state?.status === 'running') found.handOver()
      return found
    }
  }

  /** Nothing of it runs. */
  async function discard({ serverId, runId }: { serverId: string; runId: string }): Promise<void> {
    const folder = deps.gameFolder(serverId)
    const supervisor = readRecord<RunRecord>(join(folder, runFile(runId)))?.supervisor
    if (supervisor) signalGroup(supervisor, 'SIGKILL')
    await engine.remove(containerName(runId))
    rmSync(join(folder, `pipes-${runId}`), { recursive: true, force: true })
  }

  /** An engine that is not up yet may well have it. */
  async function stateOf(runId: string): Promise<ContainerState | undefined | 'unknown'> {
    try {
      return await engine.inspect(containerName(runId), FOUND_WITHIN_MS)
    } catch (error) {
      if (isUnreachable(error)) return 'unknown'
      throw error
    }
  }

  return {
    async check({ serverId, launch }) {
      const container = requireContainer(launch)
      checkContainer(container)
      await checkSurroundings(launch, deps.server(serverId))
      await engine.info(CHECKED_WITHIN_MS)
    },
    start,
    find,
    isOwn: ({ serverId, runId }) => readRecord(join(deps.gameFolder(serverId), recordFile(runId))) !== undefined,
  }
}

function requireContainer({ container }: Launch): LaunchContainer {
  if (!container) throw new Error('a launch without a container was given to the container runtime')
  return container
}

// The process adapter of the runtime port: a game is a process of this machine, beside its supervisor.
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Failure, fail } from '../../../contract/errors.ts'
import { claimRecord, readRecord } from '../../../kit/files/durable-record.ts'
import { newId } from '../../../kit/ids.ts'
import type { ServerFiles } from '../../files/server-files.ts'
import { mayBeAlive, type ProcessIdentity } from '../process-identity.ts'
import { type CheckRequest, type GameRuntime, hasEnded, type RunEvents, type StartRequest } from '../runtime.ts'
import { exitFile, NO_WORD, NOT_ISOLATED, type RunRecord, runFile, type StartAnswer } from '../supervisor/protocol.ts'
import { makeGroups, removeGroups } from './cgroups.ts'
import type { GameUsers } from './game-users.ts'
import { findBubblewrap, type GameUser, type Isolation, wrap } from './isolation.ts'
import { checkLaunch } from './preflight.ts'
import { endedRun, followRun } from './process-run.ts'
import { endForgotten } from './run-ending.ts'
import type { UserIsolation } from './user-isolation.ts'
import { createWaitingSupervisors, type ReadySupervisor } from './waiting-supervisors.ts'

export interface ProcessRuntimeDeps {
  server(serverId: string): ServerFiles
  gameFolder(serverId: string): string
  consoleFolder(serverId: string): string
  users: GameUsers
  /** What no game sees, wherever it is: the data directory, and keys of the service. */
  hidden: readonly string[]
  /** Without it, bubblewrap is the only way: a network of its own takes more than a user of its own. */
  userIsolation?: UserIsolation
  findBubblewrap?: () => Promise<string | null>
  /** Where a game cannot be isolated it is refused by default. */
  allowUnisolated: boolean
  /** That of the machine by default. */
  network?: 'machine' | 'loopback'
  /** A game that runs for longer is killed by its supervisor, also when no service is there any more. */
  killAfterMs?: number
  /** Whether the supervisor of the next game is kept ready, once a game has been started. */
  keepsSupervisorReady?: boolean
  onUnexpected(error: unknown, serverId: string): void
}

export function createProcessRuntime(deps: ProcessRuntimeDeps): GameRuntime {
  let bubblewrap: string | null = null
  const supervisors = createWaitingSupervisors({ keepsSpare: deps.keepsSupervisorReady ?? false })

  /** What takes a while, and is in nobody's way: it goes on while the rest of a start is done. */
  async function begin({ serverId, launch, limits }: CheckRequest): Promise<void> {
    const folder = deps.gameFolder(serverId)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const user = await deps.users.assign(serverId)
    supervisors.reserve(launch, {
      gameFolder: folder,
      makeGroups: () => makeGroups(newId('run', Date.now()), limits),
      ownership: user && deps.users.ownershipOf(serverId, user),
    })
  }

  async function requireIsolation(): Promise<Isolation> {
    // Where there is none it is looked for again: somebody may install it.
    bubblewrap ??= await (deps.findBubblewrap ?? findBubblewrap)()
    if (bubblewrap !== null) return { kind: 'bubblewrap', path: bubblewrap }
    const whyNoUser = deps.userIsolation ? deps.userIsolation.whyNot() : 'it needs a network of its own too'
    if (whyNoUser === null) return { kind: 'user' }
    if (deps.allowUnisolated) return { kind: 'none' }
    throw fail(
      'isolation_missing',
      'bubblewrap is not installed, or may not do its work here, so a game could read what it must not. ' +
        `A user of its own does not keep it away: ${whyNoUser}. ` +
        "Install Debian's package bubblewrap, or set GAMEKEEPER_ALLOW_UNISOLATED=1 for games that you trust.",
    )
  }

  async function ownFiles(serverId: string, isOwner: () => Promise<boolean>): Promise<GameUser | null> {
    const user = await deps.users.assign(serverId)
    if (user && !(await isOwner())) await deps.users.giveFiles(serverId, user)
    return user
  }

  async function orderOf({ serverId, runId, launch, limits }: StartRequest, { groups, isOwner }: ReadySupervisor) {
    await removeOldRuns(deps.gameFolder(serverId))
    const isolation = await requireIsolation()
    const user = await ownFiles(serverId, isOwner)
    const { controllers } = groups
    if (isolation.kind === 'user' && user) deps.userIsolation?.prepare(serverId, user)
    const { network, hidden, killAfterMs } = deps
    const filesFolder = deps.server(serverId).folders.files
    const game = { launch, filesFolder, limits, user, isolation, controllers, hidden, network }
    const { command, runtime, ...how } = wrap(game)
    const { ready, stopsByItself } = launch
    const order = {
      ...{ runId, command, ready, stopsByItself, ...how },
      ...(killAfterMs === undefined ? {} : { killAfterMs }),
      consoleFolder: deps.consoleFolder(serverId),
    }
    return { order, runtime }
  }

  const follow = (serverId: string, runId: string, events: RunEvents, isStarted: boolean) =>
    followRun({
      ...{ runId, events, isStarted },
      ...{ folder: deps.gameFolder(serverId), consoleFolder: deps.consoleFolder(serverId) },
      onUnexpected: (error) => deps.onUnexpected(error, serverId),
    })

  /** A supervisor that ended without a word may have started the game before: it is ended, or else followed. */
  async function mayBeLeft(serverId: string, runId: string, { code }: NotStarted): Promise<boolean> {
    if (code !== NO_WORD) return false
    try {
      const record = readRecord<RunRecord>(join(deps.gameFolder(serverId), runFile(runId)))
      if (record) await endForgotten(record)
      return false
    } catch (error) {
      deps.onUnexpected(error, serverId)
      return true
    }
  }

  return {
    async check(request) {
      await requireIsolation()
      await begin(request)
      try {
        await checkLaunch(request.launch, deps.server(request.serverId))
      } catch (error) {
        supervisors.giveUp(request.launch)
        throw error
      }
    },

    async start({ serverId, runId, launch, limits }: StartRequest, events) {
      const folder = deps.gameFolder(serverId)
      const ready = supervisors.take(launch, {
        gameFolder: folder,
        makeGroups: () => makeGroups(runId, limits),
        ownership: null,
      })
      using supervisor = ready.supervisor
      const cgroups = ready.groups.folders
      const begun = async () => {
        const { order, runtime } = await orderOf({ serverId, runId, launch, limits }, ready)
        const said = await supervisor.begin(folder, { ...order, cgroups })
        if (!said.started && !(await mayBeLeft(serverId, runId, said))) throw notStarted(said)
        return runtime
      }
      const runtime = await begun().catch((error) => {
        // A supervisor that ended early has left no record that names them.
        void removeGroups(cgroups)
        throw error
      })
      const loadSpare = () => void setTimeout(() => supervisors.loadSpare(folder), SPARE_AFTER_MS).unref()
      const run = await follow(serverId, runId, whenUp(events, loadSpare), true)
      if (hasEnded(run)) return { run: endedRun(runId, run, events), runtime }
      if (run.isReady()) loadSpare()
      return { run, runtime }
    },

    async find({ serverId, runId }, events) {
      const folder = deps.gameFolder(serverId)
      const file = join(folder, runFile(runId))
      const abandoned = { runId, supervisor: NOBODY, game: null, cgroups: [] } satisfies RunRecord
      // Whoever makes the record has the run: a supervisor that comes later than this finds it taken.
      if (!readRecord(file) && claimRecord(file, abandoned)) return 'lost'
      if (readRecord<RunRecord>(file)?.supervisor.pid === NOBODY.pid) return 'lost'
      return follow(serverId, runId, events, false)
    },
  }
}

type NotStarted = Extract<StartAnswer, { started: false }>

function notStarted({ code, message }: NotStarted): Failure {
  if (code !== NOT_ISOLATED) return fail('not_startable', `The game could not be started: ${message}.`)
  return fail(
    'isolation_missing',
    `bubblewrap may not do its work here, so the game was not started. It says: ${message}.`,
  )
}

/** By then those who wait for the game have heard that it is up. */
const SPARE_AFTER_MS = 250

/** Not before: a game that starts needs the processors itself. */
function whenUp(events: RunEvents, work: () => void): RunEvents {
  return {
    ...events,
    ready() {
      events.ready()
      work()
    },
  }
}

const NOBODY: ProcessIdentity = { pid: 0, startTime: '', bootId: '' }

/** A run is started only when there is no other: whatever is left of an earlier one is ended first. */
async function removeOldRuns(folder: string): Promise<void> {
  const names = readdirSync(folder).filter((entry) => /^(?:run|exit)-run_.*\.json/.test(entry))
  for (const name of names) {
    const record =
      name.startsWith('run-') && name.endsWith('.json') ? readRecord<RunRecord>(join(folder, name)) : undefined
    if (record) {
      if (isLeft(record, names)) await endForgotten(record)
      await removeGroups(record.cgroups)
    }
    rmSync(join(folder, name), { force: true })
  }
}

/** A supervisor alone may only be about to end: it has written by then how the game did. */
function isLeft({ runId, game, supervisor }: RunRecord, names: readonly string[]): boolean {
  return game ? mayBeAlive(game) : mayBeAlive(supervisor) && !names.includes(exitFile(runId))
}

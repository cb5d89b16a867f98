// The process adapter of the runtime port: a game is a process of this machine, beside its supervisor.
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fail } from '../../../contract/errors.ts'
import { claimRecord, readRecord } from '../../../kit/durable-record.ts'
import type { ServerFiles } from '../../files/server-files.ts'
import { isAlive, type ProcessIdentity, signalGroup } from '../process-identity.ts'
import { NO_USAGE, type RunUsage, readRunUsage } from '../run-usage.ts'
import type { GameRuntime, Run, RunEnd, RunEvents, StartRequest } from '../runtime.ts'
import { killGroups } from '../supervisor/cgroup-entry.ts'
import { exitFile, type RunRecord, runFile } from '../supervisor/protocol.ts'
import {
  connectSupervisor,
  type SupervisorLine,
  spawnSupervisor,
  type WaitingSupervisor,
} from '../supervisor/supervisor-client.ts'
import { makeGroups, removeGroups } from './cgroups.ts'
import type { GameUsers } from './game-users.ts'
import { findBubblewrap, type GameUser, type Isolation, wrap } from './isolation.ts'
import { checkLaunch } from './preflight.ts'
import type { UserIsolation } from './user-isolation.ts'

const ASK_EVERY_MS = 50
/** For a supervisor that has just been started, or has just lost its line. */
const ANSWERS_WITHIN_MS = 10_000
/** A game whose supervisor is gone may still save. */
const SAVES_WITHIN_MS = 10_000
const KILLED_WITHIN_MS = 5000
/** A start that was checked, and then given up, has no use for its supervisor. */
const ORDERED_WITHIN_MS = 30_000

export interface ProcessRuntimeDeps {
  server(serverId: string): ServerFiles
  gameFolder(serverId: string): string
  consoleFolder(serverId: string): string
  users: GameUsers
  userIsolation: UserIsolation
  findBubblewrap?: () => Promise<string | null>
  /** Where a game cannot be isolated it is refused by default. */
  allowUnisolated: boolean
  /** That of the machine by default. */
  network?: 'machine' | 'loopback'
  /** A game that runs for longer is killed by its supervisor, also when no service is there any more. */
  killAfterMs?: number
  onUnexpected(error: unknown, serverId: string): void
}

export function createProcessRuntime(deps: ProcessRuntimeDeps): GameRuntime {
  let bubblewrap: Promise<string | null> | undefined
  /** Of starts that have been checked: it takes a moment to load, and there is something else to do meanwhile. */
  const waiting = new Map<string, WaitingSupervisor>()

  function awaitOrder(serverId: string): void {
    const folder = deps.gameFolder(serverId)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    takeWaiting(serverId)?.[Symbol.dispose]()
    const made = spawnSupervisor(folder)
    waiting.set(serverId, made)
    const giveUp = setTimeout(() => {
      if (waiting.get(serverId) === made) takeWaiting(serverId)?.[Symbol.dispose]()
    }, ORDERED_WITHIN_MS)
    giveUp.unref()
  }

  function takeWaiting(serverId: string): WaitingSupervisor | undefined {
    const found = waiting.get(serverId)
    waiting.delete(serverId)
    return found
  }

  const findWrapper = () => (bubblewrap ??= (deps.findBubblewrap ?? findBubblewrap)())

  async function requireIsolation(): Promise<Isolation> {
    const path = await findWrapper()
    if (path !== null) return { kind: 'bubblewrap', path }
    const whyNoUser = deps.userIsolation.whyNot()
    if (whyNoUser === null) return { kind: 'user' }
    if (deps.allowUnisolated) return { kind: 'none' }
    throw fail(
      'isolation_missing',
      'bubblewrap is not installed, or may not do its work here, so a game could read what it must not. ' +
        `A user of its own does not keep it away: ${whyNoUser}. ` +
        "Install Debian's package bubblewrap, or set GAMEKEEPER_ALLOW_UNISOLATED=1 for games that you trust.",
    )
  }

  async function ownFiles(serverId: string): Promise<GameUser | null> {
    const user = await deps.users.assign(serverId)
    if (user) await deps.users.giveFiles(serverId, user)
    return user
  }

  /** The line to a supervisor that lives; undefined once it does not. */
  async function reach(folder: string, record: RunRecord, attach: Attach): Promise<SupervisorLine | undefined> {
    const deadline = performance.now() + ANSWERS_WITHIN_MS
    while (isAlive(record.supervisor) && performance.now() < deadline) {
      const line = await connectSupervisor(folder, attach)
      if (line?.status().runId === record.runId) return line
      line?.close()
      await delay(ASK_EVERY_MS)
    }
    return undefined
  }

  async function follow(serverId: string, runId: string, events: RunEvents): Promise<Run | RunEnd> {
    const folder = deps.gameFolder(serverId)
    const runEnd = () => readRecord<RunEnd>(join(folder, exitFile(runId)))
    const recordNow = () => readRecord<RunRecord>(join(folder, runFile(runId))) as RunRecord
    let line: SupervisorLine | undefined
    let isDetached = false
    let wasReady = false
    let isOver = false

    const attach: Attach = {
      changed() {
        const status = line?.status()
        if (!status || isDetached) return
        if (status.isReady && !wasReady) {
          wasReady = true
          events.ready()
        }
        events.lines()
        if (status.end) over(status.end)
      },
      closed() {
        if (!isDetached && !isOver && line) void recover().catch((error) => deps.onUnexpected(error, serverId))
      },
    }

    function over(end: RunEnd): void {
      if (isOver || isDetached) return
      isOver = true
      void removeGroups(recordNow().cgroups)
      events.ended(end)
    }

    /** The line is cut: the supervisor has ended, with or without a word, or only the line has. */
    async function recover(): Promise<void> {
      const record = recordNow()
      line = (await reach(folder, record, attach)) ?? line
      if (isAlive(record.supervisor) && line) return attach.changed()
      over(runEnd() ?? (await endWithoutSupervisor(record)))
    }

    let named: RunRecord | undefined
    async function usage(): Promise<RunUsage> {
      // It does not change once it names the game.
      if (!named?.game) named = recordNow()
      const { game, cgroups } = named
      const folders = cgroups.map((group) => group.folder)
      return game && isAlive(game) ? readRunUsage(game.pid, folders) : NO_USAGE
    }

    line = await reach(folder, recordNow(), attach)
    if (!line) {
      const end = runEnd() ?? (await endWithoutSupervisor(recordNow()))
      await removeGroups(recordNow().cgroups)
      return end
    }
    wasReady = line.status().isReady
    // What came before anybody could be told of it.
    queueMicrotask(() => attach.changed())
    return {
      runId,
      isReady: () => line?.status().isReady ?? false,
      tail: () => line?.status().tail ?? 0,
      input: async (text) => (await line?.ask({ op: 'input', text })) ?? null,
      async signal(signal) {
        const { game } = recordNow()
        if (game) signalGroup(game, signal)
      },
      usage,
      async kill() {
        // The supervisor also knows a game that is only being made.
        void line?.ask({ op: 'signal', signal: 'SIGKILL' })
        await killRun(recordNow)
      },
      detach() {
        isDetached = true
        line?.close()
      },
    }
  }

  return {
    async check({ serverId, launch }) {
      await requireIsolation()
      await checkLaunch(launch, deps.server(serverId))
      awaitOrder(serverId)
    },

    async start({ serverId, runId, launch, limits }: StartRequest, events) {
      const folder = deps.gameFolder(serverId)
      using supervisor = takeWaiting(serverId) ?? spawnSupervisor(folder)
      await removeOldRuns(folder)
      const isolation = await requireIsolation()
      const user = await ownFiles(serverId)
      if (isolation.kind === 'user' && user) deps.userIsolation.prepare(serverId, user)
      const groups = makeGroups(runId, limits)
      const filesFolder = deps.server(serverId).folders.files
      const { controllers } = groups
      const { network, killAfterMs } = deps
      const wrapping = { launch, filesFolder, limits, user, isolation, controllers, network }
      const { command, runtime, ...how } = wrap(wrapping)
      const { ready, stopsByItself } = launch
      const said = await supervisor.begin({
        ...{ runId, command, ready, stopsByItself, ...how },
        ...(killAfterMs === undefined ? {} : { killAfterMs }),
        consoleFolder: deps.consoleFolder(serverId),
        cgroups: groups.folders,
      })
      if (!said.started) throw fail('not_startable', `The game could not be started: ${said.message}.`)
      const run = await follow(serverId, runId, events)
      if ('wasReady' in run) return { run: endedRun(runId, run, events), runtime }
      return { run, runtime }
    },

    async find({ serverId, runId }, events) {
      const folder = deps.gameFolder(serverId)
      const file = join(folder, runFile(runId))
      const abandoned = { runId, supervisor: NOBODY, game: null, cgroups: [] } satisfies RunRecord
      // Whoever makes the record has the run: a supervisor that comes later than this finds it taken.
      if (!readRecord(file) && claimRecord(file, abandoned)) return 'lost'
      if (readRecord<RunRecord>(file)?.supervisor.pid === NOBODY.pid) return 'lost'
      return follow(serverId, runId, events)
    },
  }
}

interface Attach {
  changed(): void
  closed(): void
}

const NOBODY: ProcessIdentity = { pid: 0, startTime: '', bootId: '' }

/** It ended before we could listen to it: that is told like any other end. */
function endedRun(runId: string, end: RunEnd, events: RunEvents): Run {
  queueMicrotask(() => events.ended(end))
  return {
    runId,
    isReady: () => end.wasReady,
    tail: () => end.lastLine ?? 0,
    input: async () => 'gone',
    async signal() {},
    usage: async () => NO_USAGE,
    async kill() {},
    detach() {},
  }
}

/** Directly, by what the kernel knows: a supervisor that hangs must not keep a game alive. */
async function killRun(recordNow: () => RunRecord): Promise<void> {
  const { game, cgroups, supervisor } = recordNow()
  if (game) signalGroup(game, 'SIGKILL')
  killGroups(cgroups)
  // It says how the game ended, and then ends itself.
  if (!(await goneWithin(supervisor, KILLED_WITHIN_MS)) && !(game && isAlive(game))) signalGroup(supervisor, 'SIGKILL')
}

async function endWithoutSupervisor({ game, cgroups }: RunRecord): Promise<RunEnd> {
  if (game && isAlive(game)) {
    signalGroup(game, 'SIGTERM')
    if (!(await goneWithin(game, SAVES_WITHIN_MS))) signalGroup(game, 'SIGKILL')
  }
  killGroups(cgroups)
  const unknown = { code: null, signal: null, isOutOfMemory: false, wasReady: false, saidStop: false, lastLine: null }
  return { ...unknown, at: Date.now() }
}

async function goneWithin(process: ProcessIdentity, ms: number): Promise<boolean> {
  const deadline = performance.now() + ms
  while (isAlive(process)) {
    if (performance.now() > deadline) return false
    await delay(ASK_EVERY_MS)
  }
  return true
}

/** Of runs that have ended: a run is started only when there is no other. */
async function removeOldRuns(folder: string): Promise<void> {
  for (const name of readdirSync(folder).filter((entry) => /^(?:run|exit)-run_.*\.json/.test(entry))) {
    const record =
      name.startsWith('run-') && name.endsWith('.json') ? readRecord<RunRecord>(join(folder, name)) : undefined
    if (record) await removeGroups(record.cgroups)
    rmSync(join(folder, name), { force: true })
  }
}

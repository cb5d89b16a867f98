// Rehearsals: a backup is restored into a scratch place, its game is started from there with no network but its own
// loopback, and stopped once it is up. The server itself is not touched: neither its files nor its console nor its power.
import { chownSync, existsSync, lstatSync, mkdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { RehearsalReport, RehearsalWork } from '../../contract/agent/agent-games.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import type { Launch } from '../../contract/games/launch.ts'
import { readRecord, writeRecord } from '../../kit/files/durable-record.ts'
import { newId } from '../../kit/ids.ts'
import { createMutex } from '../../kit/waiting/mutex.ts'
import type { BackupsOfAgent } from '../backups/index.ts'
import { createAgentFiles } from '../files/index.ts'
import { openRoot } from '../files/sandbox/directory.ts'
import { removeTree } from '../files/sandbox/remove-tree.ts'
import type { ServerFiles } from '../files/server-files.ts'
import type { GamesOptions } from '../games/games-deps.ts'
import { longestStopMs } from '../games/power/stop-ladder.ts'
import { createPreparation } from '../games/preparation.ts'
import { findBubblewrap, NETWORK_OF_ITS_OWN } from '../games/process/isolation.ts'
import type { GameRuntime } from '../games/runtime.ts'
import { type Layout, layout as layoutOf } from '../layout.ts'
import type { TaskContext, TaskHandlers } from '../tasks.ts'
import { playRun, readLog } from './rehearsal-run.ts'
import { createRehearsalRuntimes, type RehearsedRun } from './rehearsal-runtimes.ts'
import { watchRoom } from './room-watch.ts'

/** Beyond what the game is given to come up and to stop, until its supervisor ends it whoever is there. */
const GRACE_MS = 60_000
const REMOVAL_TRIES = 20
const REMOVED_AGAIN_MS = 100

/** What the game is played by. */
interface Scene {
  runtime: GameRuntime
  launch: Launch
}

export interface Rehearsals {
  handlers: TaskHandlers<RehearsalWork['kind']>
  /** Ends and removes what an earlier service has left. */
  recover(): Promise<void>
}

export function createRehearsals(deps: {
  layout: Layout
  backups: Pick<BackupsOfAgent, 'restoreInto'>
  options: GamesOptions
  now(): number
  /** Where bubblewrap is, if it can give a game a network of its own. */
  findBubblewrap?: () => Promise<string | null>
  freeBytes?: (folder: string) => Promise<number>
  onUnexpected(error: unknown, serverId: string): void
}): Rehearsals {
  const { layout, backups, onUnexpected } = deps
  const place = layout.rehearsals
  const findIsolation = deps.findBubblewrap ?? (() => findBubblewrap(NETWORK_OF_ITS_OWN))
  const scratch = layoutOf(place)
  /** Written before the game is started: the next service ends it by this, should this one die. */
  const noteFile = join(place, 'run.json')
  const runtimes = createRehearsalRuntimes({
    layout,
    options: deps.options,
    findBubblewrap: findIsolation,
    onUnexpected,
  })
  const prepare = createPreparation()
  const turn = createMutex()

  async function clean(): Promise<void> {
    if (!existsSync(place)) return
    const note = readRecord<RehearsedRun>(noteFile)
    if (note) await runtimes.end(note)
    using parent = openRoot(dirname(place))
    for (let tries = 1; !(await removeTree(parent, basename(place), { share: place })); tries++) {
      if (tries === REMOVAL_TRIES) throw new Error('something is mounted in the folder of rehearsals')
      // A supervisor tells of the end first, and then writes it down.
      await delay(REMOVED_AGAIN_MS)
    }
  }

  /** It runs as whoever the server's game runs as, where that has a user of its own. */
  function giveToUser(serverId: string): void {
    if (process.getuid?.() !== 0) return
    const { uid, gid } = lstatSync(layout.server(serverId).files)
    const { first, last } = deps.options.users
    if (uid >= first && uid <= last) chownSync(scratch.server(serverId).files, uid, gid)
  }

  /** Why the backup cannot be used, or the game not be started from it; null where nothing speaks against it. */
  async function build(server: ServerFiles, work: RehearsalWork, context: TaskContext, { runtime, launch }: Scene) {
    const { serverId } = context
    try {
      await backups.restoreInto(server, { serverId, backupId: work.backupId }, context)
      giveToUser(serverId)
      await runtime.check({ serverId, launch, limits: work.limits })
      await prepare(server, launch)
      return null
    } catch (error) {
      // That is what a rehearsal is for. Anything else, also a start that fails after this, says nothing about the backup.
      if (!isFailure(error, 'backup_damaged') && !isFailure(error, 'not_startable')) throw error
      return error.detail
    }
  }

  async function rehearseIn(server: ServerFiles, work: RehearsalWork, context: TaskContext): Promise<RehearsalReport> {
    const { serverId } = context
    using room = watchRoom(place, deps.freeBytes)
    const signal = AbortSignal.any([context.signal, room.signal])
    const { limits, timeoutSeconds } = work
    // In a network of its own every port is free.
    const launch = { ...work.launch, ports: [] }
    const runtime = runtimes.of(launch, server, timeoutSeconds * 1000 + longestStopMs(launch) + GRACE_MS)
    const fault = await build(server, work, context, { runtime, launch })
    if (fault !== null) return { outcome: 'failed', reason: fault, log: [] }
    const runId = newId('run', deps.now())
    writeRecord(noteFile, { serverId, runId } satisfies RehearsedRun)
    const said = await playRun({
      ...{ runtime, request: { serverId, runId, launch, limits }, timeoutSeconds, signal },
      onUnexpected: (error) => onUnexpected(error, serverId),
    })
    return { ...said, log: await readLog(runtimes.consoleFolder(serverId), serverId) }
  }

  async function rehearse(work: RehearsalWork, context: TaskContext): Promise<RehearsalReport> {
    context.signal.throwIfAborted()
    if (!work.launch.container && (await findIsolation()) === null) throw noIsolation()
    await clean()
    const { root, files: top } = scratch.server(context.serverId)
    for (const folder of [place, scratch.servers, root]) mkdirSync(folder, { mode: 0o700 })
    mkdirSync(top)
    const files = createAgentFiles({ layout: scratch, onUnexpected })
    try {
      const server = files.server(context.serverId)
      server.setQuota({ bytes: null, entries: null })
      return await rehearseIn(server, work, context)
    } finally {
      await files.stop()
      await clean().catch((error: unknown) => onUnexpected(error, context.serverId))
    }
  }

  return {
    handlers: { 'backups.rehearse': (work, context) => turn(() => rehearse(work, context)) },
    async recover() {
      await clean().catch((error: unknown) => onUnexpected(error, ''))
      await runtimes.removeLeft()
    },
  }
}

const noIsolation = () =>
  fail(
    'isolation_missing',
    'A rehearsal needs bubblewrap, which is not installed or may not do its work here: without it the game would reach the ' +
      "network, and its server's own ports. Install Debian's package bubblewrap.",
  )

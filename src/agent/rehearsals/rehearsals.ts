// Rehearsals: a backup is restored into a scratch place, its game is started from there with no network but its own
// loopback, and stopped once it is up. The server itself is not touched: neither its files nor its console nor its power.
import { chownSync, existsSync, lstatSync, mkdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { RehearsalReport, RehearsalWork } from '../../contract/agent/agent-games.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import type { Launch } from '../../contract/games/launch.ts'
import { readRecord, writeRecord } from '../../kit/durable-record.ts'
import { newId } from '../../kit/ids.ts'
import { createMutex } from '../../kit/mutex.ts'
import type { BackupsOfAgent } from '../backups/index.ts'
import { createAgentFiles } from '../files/index.ts'
import { openRoot } from '../files/sandbox/directory.ts'
import { removeTree } from '../files/sandbox/remove-tree.ts'
import type { ServerFiles } from '../files/server-files.ts'
import type { GamesOptions } from '../games/index.ts'
import { createPreparation } from '../games/preparation.ts'
import { createGameUsers } from '../games/process/game-users.ts'
import { findBubblewrap, NETWORK_OF_ITS_OWN } from '../games/process/isolation.ts'
import { createProcessRuntime } from '../games/process/process-runtime.ts'
import { type GameRuntime, hasEnded } from '../games/runtime.ts'
import { type Layout, layout as layoutOf } from '../layout.ts'
import type { TaskContext, TaskHandlers } from '../tasks.ts'
import { playRun, readLog } from './rehearsal-run.ts'
import { watchRoom } from './room-watch.ts'

/** Beyond what the game is given to come up and to stop, until its supervisor ends it whoever is there. */
const GRACE_MS = 60_000

/** Written before the game is started: the next service ends it by this, should this one die. */
interface RunNote {
  serverId: string
  runId: string
}

/** A user of its own is not enough here. */
const NO_NETWORK_OF_ITS_OWN = { whyNot: () => 'a rehearsal needs a network of its own', prepare() {} }

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
  const noteFile = join(place, 'run.json')
  const gameFolder = (serverId: string) => join(scratch.server(serverId).root, 'game')
  const consoleFolder = (serverId: string) => join(scratch.server(serverId).root, 'console')
  const prepare = createPreparation()
  const turn = createMutex()

  const runtimeOf = (server: (serverId: string) => ServerFiles, killAfterMs = GRACE_MS): GameRuntime =>
    createProcessRuntime({
      server,
      gameFolder,
      consoleFolder,
      users: createGameUsers({ layout: scratch, range: deps.options.users, others: [layout] }),
      hidden: [dirname(layout.servers), ...deps.options.keyFiles],
      userIsolation: NO_NETWORK_OF_ITS_OWN,
      findBubblewrap: findIsolation,
      allowUnisolated: false,
      network: 'loopback',
      killAfterMs,
      onUnexpected,
    })

  /** Also one that was only about to be started. */
  async function endRun(): Promise<void> {
    const note = readRecord<RunNote>(noteFile)
    if (!note || !existsSync(gameFolder(note.serverId))) return
    const found = await runtimeOf(noFiles).find(note, { ready() {}, lines() {}, ended() {} })
    if (found === 'lost' || hasEnded(found)) return
    await found.kill()
    found.detach()
  }

  async function clean(): Promise<void> {
    if (!existsSync(place)) return
    await endRun()
    using parent = openRoot(dirname(place))
    if (!(await removeTree(parent, basename(place), { share: place })))
      throw new Error('something is mounted in the folder of rehearsals')
  }

  /** It runs as whoever the server's game runs as, where that has a user of its own. */
  function giveToUser(serverId: string): void {
    if (process.getuid?.() !== 0) return
    const { uid, gid } = lstatSync(layout.server(serverId).files)
    const { first, last } = deps.options.users
    if (uid >= first && uid <= last) chownSync(scratch.server(serverId).files, uid, gid)
  }

  async function build(server: ServerFiles, launch: Launch, work: RehearsalWork, context: TaskContext): Promise<void> {
    const { serverId } = context
    await backups.restoreInto(server, { serverId, backupId: work.backupId }, context)
    giveToUser(serverId)
    await runtimeOf(() => server).check({ serverId, launch, limits: work.limits })
    await prepare(server, launch)
  }

  async function rehearseIn(server: ServerFiles, work: RehearsalWork, context: TaskContext): Promise<RehearsalReport> {
    const { serverId } = context
    using room = watchRoom(place, deps.freeBytes)
    const signal = AbortSignal.any([context.signal, room.signal])
    const { limits, timeoutSeconds } = work
    // In a network of its own every port is free.
    const launch = { ...work.launch, ports: [] }
    const stopSeconds = launch.stop.reduce((sum, step) => sum + step.timeoutSeconds, 0)
    const runtime = runtimeOf(() => server, (timeoutSeconds + stopSeconds) * 1000 + GRACE_MS)
    try {
      await build(server, launch, work, context)
      const runId = newId('run', deps.now())
      writeRecord(noteFile, { serverId, runId } satisfies RunNote)
      const said = await playRun({ runtime, request: { serverId, runId, launch, limits }, timeoutSeconds, signal })
      return { ...said, log: await readLog(consoleFolder(serverId), serverId) }
    } catch (error) {
      // That is what a rehearsal is for. Anything else says nothing about the backup.
      if (!isFailure(error, 'backup_damaged') && !isFailure(error, 'not_startable')) throw error
      return { outcome: 'failed', reason: error.detail, log: [] }
    }
  }

  async function rehearse(work: RehearsalWork, context: TaskContext): Promise<RehearsalReport> {
    context.signal.throwIfAborted()
    if ((await findIsolation()) === null) throw noIsolation()
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
    recover: () => clean().catch((error: unknown) => onUnexpected(error, '')),
  }
}

function noFiles(): never {
  throw new Error('nothing is started here')
}

const noIsolation = () =>
  fail(
    'isolation_missing',
    'A rehearsal needs bubblewrap, which is not installed or may not do its work here: without it the game would reach the ' +
      "network, and its server's own ports. Install Debian's package bubblewrap.",
  )

// The games of one machine: the part of the Agent port that runs them, and what the rest of the agent has to know of them.
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fail } from '../../contract/errors.ts'
import { createKeyedMutex } from '../../kit/waiting/mutex.ts'
import { createWatchers } from '../../kit/waiting/watchers.ts'
import { readLastLine, readPage } from './console/console-reader.ts'
import { type ConsoleTail, createConsoleTail } from './console/console-tail.ts'
import { openConsoleWriter } from './console/console-writer.ts'
import type { GamesDeps, GamesOfAgent } from './games-deps.ts'
import { createInstallation } from './install/installation.ts'
import { createObservation } from './observation.ts'
import { createPauses } from './pauses.ts'
import { createGame } from './power/game.ts'
import type { Game } from './power/game-deps.ts'
import { createStartHold, type StartHold } from './power/start-hold.ts'
import { SYSTEM_TIMERS } from './power/stop-ladder.ts'
import { createPreparation } from './preparation.ts'
import { createRuntimes } from './runtimes.ts'
import { openDoor } from './sleep/door.ts'
import { createStateChanges } from './state-changes.ts'
import { createWorldHolds } from './world-holds.ts'

export function createAgentGames(deps: GamesDeps): GamesOfAgent {
  const { layout, timers = SYSTEM_TIMERS } = deps
  const games = new Map<string, Game>()
  const startHolds = new Map<string, StartHold>()
  const folderOf = (serverId: string) => join(layout.server(serverId).root, 'game')
  const consoleOf = (serverId: string) => join(layout.server(serverId).root, 'console')
  const recordOf = (serverId: string) => join(folderOf(serverId), 'power.json')
  const changes = createStateChanges(() => serverIds().filter((serverId) => existsSync(recordOf(serverId))))
  const lines = createWatchers()
  const startTurn = createKeyedMutex()
  const prepare = createPreparation()
  const tails = new Map<string, ConsoleTail>()
  const runtime = deps.runtime ?? createRuntimes(deps, { gameFolder: folderOf, consoleFolder: consoleOf })

  function serverIds(): string[] {
    return existsSync(layout.servers) ? readdirSync(layout.servers).filter((name) => name.startsWith('srv_')) : []
  }

  function startHoldOf(serverId: string): StartHold {
    const hold = startHolds.get(serverId) ?? createStartHold()
    startHolds.set(serverId, hold)
    return hold
  }

  function game(serverId: string): Game {
    const known = games.get(serverId)
    if (known) return known
    // Fails for a server that is not here.
    deps.files.server(serverId)
    const made = createGame({
      serverId,
      file: recordOf(serverId),
      runtime,
      timers,
      addFact: deps.journal.add,
      startHold: startHoldOf(serverId),
      async prepare(launch) {
        await installation.abandon(serverId)
        await prepare(deps.files.server(serverId), launch)
      },
      shareFiles: () => deps.files.server(serverId).lock.share(),
      letGo: () => holds.interrupt(serverId),
      startTurn,
      disk: {
        hasByteLimit: () => deps.files.server(serverId).usage.quota().bytes !== null,
        async read() {
          const { usage } = deps.files.server(serverId)
          await usage.rescan()
          return usage.read()
        },
      },
      occupancy: () => (deps.occupancy ?? observation.presence)(serverId),
      openDoor: deps.openDoor ?? openDoor,
      changed() {
        changes.tell(serverId)
        tellLines(serverId)
      },
      lines: () => tellLines(serverId),
      onUnexpected: (error) => deps.onUnexpected(error, serverId),
    })
    games.set(serverId, made)
    return made
  }

  const installation = createInstallation({
    files: deps.files,
    runtime,
    gameFolder: folderOf,
    hold(serverId) {
      // Not in the middle of a restore.
      deps.files.server(serverId).lock.share()[Symbol.dispose]()
      mkdirSync(folderOf(serverId), { recursive: true, mode: 0o700 })
      const { power } = game(serverId).read()
      if (isRunning(serverId) || power.state === 'starting')
        throw fail('server_running', 'The game runs. Stop it first.')
      return startHoldOf(serverId).take()
    },
    note(serverId, text) {
      using writer = openConsoleWriter(consoleOf(serverId), timers.now)
      writer.write('gamekeeper', [Buffer.from(text)])
      lines.tell(serverId)
    },
    lines: lines.tell,
    timers,
    onUnexpected: deps.onUnexpected,
  })

  const observation = createObservation({
    games,
    gameFolder: folderOf,
    consoleFolder: consoleOf,
    server: deps.files.server,
    addFact: deps.journal.add,
    now: timers.now,
    onUnexpected: deps.onUnexpected,
  })

  function tellLines(serverId: string): void {
    lines.tell(serverId)
    observation.wake(serverId)
  }

  function tailOf(serverId: string): ConsoleTail {
    const tail = tails.get(serverId) ?? createConsoleTail(consoleOf(serverId))
    tails.set(serverId, tail)
    return tail
  }

  const isRunning = (serverId: string) => games.get(serverId)?.isActive() ?? false

  const holds = createWorldHolds({
    current: (serverId) => games.get(serverId)?.current(),
    isActive: isRunning,
    startId: (serverId) => games.get(serverId)?.startId() ?? null,
    installations(serverId) {
      const hold = startHoldOf(serverId)
      return { isUnderWay: hold.isTaken(), count: hold.count() }
    },
    noteFile: (serverId) => join(folderOf(serverId), 'held.json'),
    console: tailOf,
    lines,
    timers,
    onUnexpected: deps.onUnexpected,
  })
  const pauses = createPauses({
    game,
    requireWhole: (serverId) => deps.files.server(serverId).gate.requireOpen(),
    noteFile: (serverId) => join(folderOf(serverId), 'paused.json'),
    changes: lines,
  })

  /** Never fails. */
  async function recover(serverId: string): Promise<void> {
    try {
      await game(serverId).recover()
      // What was written while we were away, also by a game that has ended.
      observation.wake(serverId)
      await holds.interrupt(serverId)
    } catch (error) {
      deps.onUnexpected(error, serverId)
    }
  }

  return {
    async power(request) {
      const isChange = pauses.accept(request.serverId, request.action)
      const answer = await game(request.serverId).power(request)
      return { ...answer, isChange: answer.isChange || isChange }
    },
    setSleep: ({ serverId, sleep }) => game(serverId).setSleep(sleep),
    resume: ({ serverId, jobId }) => pauses.resume(serverId, jobId),
    paused: async () =>
      serverIds().flatMap((serverId) => {
        const jobId = pauses.jobOf(serverId)
        return jobId === null ? [] : [{ serverId, jobId }]
      }),
    handlers: {
      'games.pause': async ({ jobId, origin }, { serverId, signal }) => ({
        wasWanted: await pauses.pause(serverId, { jobId, origin }, signal),
      }),
      'games.install': installation.install,
    },
    holdWorld: holds.hold,
    read: async ({ serverId }) => game(serverId).read(),
    changes: ({ version, waitMs }) => changes.since(version, waitMs),
    sendCommand: ({ serverId, command, origin }) => game(serverId).input(command, origin?.cause ?? null),

    readConsole: ({ serverId, ...request }, signal) => readPage(consoleOf(serverId), serverId, request, signal),

    async followConsole({ serverId, after, waitMs }, signal) {
      const folder = consoleOf(serverId)
      const tail = async () => game(serverId).tail() ?? (await readLastLine(folder))
      if (after === null) return { lines: [], position: await tail() }
      using waiting = lines.watch(serverId)
      if ((await tail()) <= after) await waiting.wait(waitMs, signal)
      const found = await tailOf(serverId).after(after)
      return { lines: found, position: found.at(-1)?.line ?? after }
    },

    ...observation.port,
    presence: observation.presence,
    sample: observation.sample,

    isRunning,
    requireStopped(serverId) {
      if (isRunning(serverId)) throw fail('server_running', 'The game runs. Stop it first.')
      startHoldOf(serverId).requireFree()
    },
    async end(serverId) {
      await games.get(serverId)?.end()
      await installation.abandon(serverId)
    },
    forget(serverId) {
      holds.forget(serverId)
      games.get(serverId)?.detach()
      games.delete(serverId)
      startHolds.delete(serverId)
      tails.delete(serverId)
      observation.forget(serverId)
      changes.forget(serverId)
      lines.tell(serverId)
    },

    async start() {
      for (const serverId of serverIds().filter((each) => existsSync(recordOf(each)))) {
        const recovering = recover(serverId)
        // An engine may hang. Until it is known what became of its games they count as running, and nobody waits for it.
        if (!games.get(serverId)?.launch()?.container) await recovering
      }
      observation.start()
    },
    stop() {
      observation.stop()
      holds.stop()
      for (const each of games.values()) each.detach()
      changes.stop()
    },
  }
}

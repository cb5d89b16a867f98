// Power and console of the games of servers. The agent decides what becomes of a game; its row has what the agent said last,
// so that a server can be read without asking the machine that it is on.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { GameLimits, GameState } from '../../contract/agent/agent-games.ts'
import type { Agent } from '../../contract/agent.ts'
import { fail, invalidField, isFailure } from '../../contract/errors.ts'
import { CONSOLE_COMMAND_MAX_BYTES } from '../../contract/fixed-limits.ts'
import type { ConsoleLine, ConsoleQuery } from '../../contract/games/console.ts'
import type { Launch } from '../../contract/games/launch.ts'
import type { PowerAction } from '../../contract/games/power.ts'
import type { Page } from '../../contract/schema.ts'
import type { Server } from '../../contract/servers.ts'
import { createKeyedMutex } from '../../kit/waiting/mutex.ts'
import { createTurns } from '../../kit/waiting/turns.ts'
import type { Db, ServerRow } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, originOf } from '../http/actor.ts'
import type { Templates } from '../templates/service.ts'
import { found, requireReadyServer, requireServerFiles } from './access.ts'
import type { Installs } from './install.ts'
import { gameLimitsOf, launchOf } from './launch.ts'
import { present } from './present.ts'
import { type SleepSettings, sleepOf } from './sleep.ts'
import type { StartWishes } from './start-wishes.ts'
import * as store from './store.ts'

const HEARTBEAT_MS = 15_000
const WAIT_MS = 20_000
const REST_MS = 1000

export interface Games {
  power(actor: Actor, serverId: string, action: PowerAction): Promise<{ server: Server; isChange: boolean }>
  readConsole(actor: Actor, serverId: string, query: ConsoleQuery, signal: AbortSignal): Promise<Page<ConsoleLine>>
  /** Lines as they are written, oldest first, each once, until the signal says stop. An empty batch is a sign of life. */
  followConsole(
    actor: Actor,
    serverId: string,
    from: { lastId: string | null; q: string | null },
    signal: AbortSignal,
  ): AsyncGenerator<ConsoleLine[]>
  sendCommand(actor: Actor, serverId: string, command: string): Promise<undefined>
  /** How the game of a server is started now. Throws `invalid_request` where its template lacks a value. */
  launchFor(row: ServerRow): Promise<{ launch: Launch; limits: GameLimits }>
  /** What its template leaves out of backups: patterns, one a line. */
  ignoredBy(row: ServerRow): Promise<string>
  /** From now on the rows have what the agent says. */
  start(): void
  stop(): Promise<void>
}

export function createGames(deps: {
  db: Db
  agent: Pick<Agent, 'games'>
  /** What the agent has told of a server, and has no entry yet. */
  facts: { recordAllOf(serverId: string): Promise<void> }
  templates: Pick<Templates, 'find'>
  sleeps: SleepSettings
  installs: Pick<Installs, 'requireNone'>
  wishes: Pick<StartWishes, 'cancelAllOf' | 'register'>
  log: Logger
}): Games {
  const { db, log } = deps
  const { games } = deps.agent
  const mutex = createKeyedMutex()
  const stopping = new AbortController()
  const stopped = new Promise<undefined>((resolve) =>
    stopping.signal.addEventListener('abort', () => resolve(undefined)),
  )
  let loop: Promise<void> = Promise.resolve()

  /** Reads in its turn: whichever of several comes last here, the row has what is true then. */
  const refresh = (serverId: string): Promise<ServerRow> =>
    mutex(serverId, async () => {
      const state: GameState = await games.read({ serverId })
      const row = found(await store.findServer(db, serverId))
      const game_state = JSON.stringify(state)
      if (row.game_state !== game_state) await store.saveGameState(db, serverId, game_state)
      return { ...row, game_state }
    })

  /** So that whoever reads the activity after the answer finds it there. What cannot be recorded now is recorded later. */
  const recordNow = (serverId: string) =>
    deps.facts.recordAllOf(serverId).catch((error: unknown) => {
      log.warn({ err: error, serverId }, 'what was asked of a game could not be recorded; it is tried again')
    })

  const templateOf = async ({ game }: ServerRow) => (game === null ? undefined : await deps.templates.find(game))
  const launchFor = async (row: ServerRow) => launchOf(row, await templateOf(row))

  async function act(row: ServerRow, action: PowerAction, actor: Actor, signal?: AbortSignal) {
    const launch = action === 'start' || action === 'restart' ? await launchFor(row) : null
    signal?.throwIfAborted()
    const { isChange } = await games.power({
      ...{ serverId: row.id, action, launch },
      limits: gameLimitsOf(row),
      autoRestart: row.auto_restart === 1,
      sleep: sleepOf(row),
      origin: originOf(actor),
    })
    if (isChange) await recordNow(row.id)
    return { isChange }
  }

  deps.wishes.register(async ({ actor, serverId, signal }) => {
    const row = await requireReadyServer(db, actor, serverId)
    await deps.installs.requireNone(serverId)
    await act(row, 'start', actor, signal)
    await refresh(serverId)
  })

  async function refreshAll(serverIds: readonly string[]): Promise<void> {
    for (const serverId of serverIds) {
      try {
        await refresh(serverId)
      } catch (error) {
        // Deleted, or put aside: its folders are not there.
        if (!isFailure(error)) throw error
      }
    }
  }

  async function run(): Promise<void> {
    let version = ''
    while (!stopping.signal.aborted) {
      try {
        const changes = await Promise.race([games.changes({ version, waitMs: WAIT_MS }), stopped])
        if (!changes) return
        await refreshAll(changes.serverIds)
        // At the start: what a crash between a commit and its `apply` has left out.
        if (version === '') for (const serverId of changes.serverIds) await deps.sleeps.apply(serverId)
        version = changes.version
      } catch (error) {
        log.error({ err: error }, 'the state of games could not be recorded; it is tried again')
        await delay(REST_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
      }
    }
  }

  return {
    async power(actor, serverId, action) {
      const row = await requireReadyServer(db, actor, serverId)
      const mayStart = action === 'start' || action === 'restart'
      if (mayStart) await deps.installs.requireNone(serverId)
      // A kill waits for nothing: it ends a start that is under way.
      else await deps.wishes.cancelAllOf(serverId, { isPatient: action !== 'kill' })
      const { isChange } = await act(row, action, actor)
      const answer = { server: present(await refresh(serverId)), isChange }
      if (actor.remember) await transact(db, actor, async () => answer)
      return answer
    },

    async readConsole(actor, serverId, query, signal) {
      await requireServerFiles(db, actor, serverId)
      const { limit = 50, q = null } = query
      const before = lineBefore(query)
      const { lines, next } = await games.readConsole({ serverId, before, limit, q }, signal)
      return { data: lines, nextCursor: next === null ? null : String(next) }
    },

    async *followConsole(actor, serverId, { lastId, q }, signal) {
      await requireServerFiles(db, actor, serverId)
      let position = lastId === null ? null : lineNumberOf(lastId)
      if (position === null) position = (await games.followConsole({ serverId, after: null, waitMs: 0 })).position
      // Says that the stream has begun: whatever is written from here on will be seen.
      yield []
      const wanted = q?.toLowerCase()
      const turns = createTurns(serverId, signal)
      while (!signal.aborted) {
        const batch = await games.followConsole({ serverId, after: position, waitMs: HEARTBEAT_MS }, signal)
        position = batch.position
        // However fast a game writes and however many follow it, others have their turn.
        if (batch.lines.length > 0) await turns.take()
        yield wanted === undefined ? batch.lines : batch.lines.filter(({ text }) => text.toLowerCase().includes(wanted))
      }
    },

    async sendCommand(actor, serverId, command) {
      await requireReadyServer(db, actor, serverId)
      if (Buffer.byteLength(command) > CONSOLE_COMMAND_MAX_BYTES)
        throw invalidField('/command', `must be at most ${CONSOLE_COMMAND_MAX_BYTES} bytes`)
      await games.sendCommand({ serverId, command, origin: originOf(actor) })
      await recordNow(serverId)
      if (actor.remember) await transact(db, actor, async () => undefined)
    },

    launchFor: async (row) => ({ launch: await launchFor(row), limits: gameLimitsOf(row) }),
    ignoredBy: async (row) => (await templateOf(row))?.ignored?.join('\n') ?? '',

    start() {
      loop = run()
    },
    async stop() {
      stopping.abort()
      await loop
    },
  }
}

/** Two names for one thing: a cursor is the number of a line. */
function lineBefore({ before, cursor }: Pick<ConsoleQuery, 'before' | 'cursor'>): number | null {
  if (before !== undefined && cursor !== undefined)
    throw invalidField('/cursor', 'cannot be given together with before', 'query')
  return before ?? (cursor === undefined ? null : Number(cursor))
}

function lineNumberOf(lastId: string): number {
  if (!/^\d{1,15}$/.test(lastId)) throw fail('invalid_request', 'Last-Event-ID is not the number of a line.')
  return Number(lastId)
}

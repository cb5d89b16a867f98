// The power of one game: one state, one small handler for each, one action at a time. `kill` waits for nothing.

import type { AgentGames, GameState } from '../../../contract/agent/agent-games.ts'
import type { FactCause } from '../../../contract/agent.ts'
import { fail } from '../../../contract/errors.ts'
import type { Launch, Quiesce } from '../../../contract/games/launch.ts'
import type { PowerAction, PowerState } from '../../../contract/games/power.ts'
import { newId } from '../../../kit/ids.ts'
import { createMutex, type Mutex } from '../../../kit/mutex.ts'
import { iso } from '../../../kit/time.ts'
import type { NewFact } from '../../journal/journal.ts'
import { bootId } from '../process-identity.ts'
import { type GameRuntime, hasEnded, type Run, type RunEnd, type RunEvents } from '../runtime.ts'
import { isCrash, reasonOf, restartDelayMs, restartsAfter } from './exits.ts'
import { type GameRecord, readGame, writeGame } from './game-record.ts'
import { descend, type Timers } from './stop-ladder.ts'

/** Records that the action was asked for, once nothing speaks against it and before anything is done. */
type Accept = () => Promise<unknown>
const accepted: Accept = async () => {}

type Request = Parameters<AgentGames['power']>[0]

export interface Game {
  read(): GameState
  /** Whether a process of it runs, or is about to. */
  isActive(): boolean
  /** Whether it is meant to run. */
  isWanted(): boolean
  /** The run under way. */
  current(): { run: Run; quiesce: Quiesce | null; state: PowerState } | undefined
  /** Another after each start. */
  startId(): string | null
  /** Starts it as it was started last; one that stops is started when it has. What keeps it from starting is tried again. */
  again(): Promise<void>
  power(request: Request): Promise<{ game: GameState; isChange: boolean }>
  input(command: string, cause: FactCause | null): Promise<void>
  /** How it was started last; null where it never was. */
  launch(): Launch | null
  /** The run under way, where there is one. */
  run(): Run | undefined
  /** The number of the last line, where a run is under way. */
  tail(): number | undefined
  /** Goes on with what an earlier service has left. */
  recover(): Promise<void>
  /** Ends it now, for a server that is put aside. Resolves once it has ended. */
  end(): Promise<void>
  /** The game goes on; nothing more is done about it. */
  detach(): void
}

export interface GameDeps {
  serverId: string
  /** Where its record is. */
  file: string
  runtime: GameRuntime
  timers: Timers
  /** Resolves once it is durable. */
  addFact(fact: NewFact): Promise<void>
  /** Fills in the files that the launch names, and fails with a code where something is missing. */
  prepare(launch: Launch): Promise<void>
  /** Held while a game is being started: nothing replaces its files meanwhile. */
  shareFiles(): Disposable
  /** Lets go on what is held still. Never fails. */
  letGo(): Promise<void>
  /** Of the starts that the machine's own start brings, one at a time. */
  startTurn: Mutex
  changed(): void
  lines(): void
  onUnexpected(error: unknown): void
}

export function createGame(deps: GameDeps): Game {
  const { serverId, file, runtime, timers } = deps
  const mutex = createMutex()
  let record = readGame(file)
  let run: Run | undefined
  let starting: AbortController | undefined
  let ladder: AbortController | undefined
  let restarting: Disposable | undefined
  let isDetached = false
  const endings = new Set<() => void>()

  const read = (): GameState => ({ power: record.power, runtime: record.runtime })
  const isActive = () => run !== undefined || starting !== undefined
  /** After the machine has started, until it is its turn. */
  const isQueued = () => record.power.state === 'starting' && !isActive()

  /** A full disk must not keep the state from being shown as it is; what it could not take is written with the next change. */
  function save(change: Partial<GameRecord>): void {
    record = { ...record, ...change }
    try {
      writeGame(file, record)
    } catch (error) {
      deps.onUnexpected(error)
    }
    deps.changed()
  }

  const inState = (state: PowerState, step: string | null) => ({
    power: { ...record.power, state, step, since: iso(timers.now()) },
  })

  function enter(state: PowerState, change: Partial<GameRecord> = {}, step: string | null = null): void {
    save({ ...change, ...inState(state, step) })
  }

  const addFact = (fact: NewFact) => deps.addFact(fact).catch(deps.onUnexpected)

  /** For those who wait until nothing of it runs. */
  function tellEnd(): void {
    for (const resolve of endings) resolve()
    endings.clear()
  }

  const tell = (step: string) => save({ power: { ...record.power, step } })
  const background = (work: Promise<unknown>) => void work.catch(deps.onUnexpected)

  function cancelRestart(): void {
    restarting?.[Symbol.dispose]()
    restarting = undefined
  }

  // Starting.

  async function start(accept: Accept = accepted): Promise<void> {
    const { launch, limits } = record
    if (!launch) throw fail('not_startable', 'Nothing says how the game of this server is started.')
    cancelRestart()
    const mine = new AbortController()
    starting = mine
    const before = record
    try {
      using _files = deps.shareFiles()
      await runtime.check({ serverId, launch, limits })
      await deps.prepare(launch)
      mine.signal.throwIfAborted()
      await accept()
      const runId = newId('run', timers.now())
      const fresh = { readyFactId: newId('act', timers.now()), runningSince: null, restartAt: null, asked: null }
      const next = { ...record, ...fresh, isWanted: true, runId, bootId: bootId(), ...inState('starting', null) }
      // Without it, nobody would find the game again.
      writeGame(file, next)
      save(next)
      const started = await runtime.start({ serverId, runId, launch, limits }, eventsOf(runId))
      run = started.run
      save({ runtime: started.runtime })
      if (mine.signal.aborted) await run.kill()
      else if (run.isReady()) await comeUp()
    } catch (error) {
      run = undefined
      const change = { runId: null, asked: null, isWanted: false }
      if (mine.signal.aborted) return enter('stopped', change)
      // As it was: nothing has run.
      if (record !== before) save({ ...change, power: { ...before.power, step: null } })
      throw error
    } finally {
      starting = undefined
      if (!run) tellEnd()
    }
  }

  function eventsOf(runId: string): RunEvents {
    const isCurrent = () => record.runId === runId && !isDetached
    return {
      ready: () => background(isCurrent() ? comeUp() : Promise.resolve()),
      lines: deps.lines,
      ended: (end) => background(mutex(async () => (isCurrent() ? ended(end) : undefined))),
    }
  }

  async function comeUp(): Promise<void> {
    if (record.power.state !== 'starting') return
    enter('running', { runningSince: timers.now() })
    const id = record.readyFactId
    if (id !== null) await addFact({ id, serverId, kind: 'game.running', cause: null, properties: {} })
  }

  // Ending.

  async function ended(end: RunEnd, at = timers.now()): Promise<void> {
    const { asked, runId, runningSince } = record
    const reason = reasonOf(end, asked)
    const exit = { reason, code: end.code, signal: end.signal, at: iso(end.at), lastLine: end.lastLine }
    const hasCrashed = isCrash(reason, asked)
    await addFact({
      // Told again after a crash of ours, it is the same entry.
      id: (runId ?? '').replace('run_', 'act_'),
      serverId,
      kind: hasCrashed ? 'game.crashed' : 'game.stopped',
      cause: null,
      properties: exit,
    })
    run = undefined
    ladder?.abort()
    record = { ...record, power: { ...record.power, exit } }
    const over = { runId: null, asked: null }
    if (hasCrashed) crash({ ...over, restarts: restartsAfter(record.restarts, at - (runningSince ?? at)) })
    else enter('stopped', { ...over, isWanted: asked === 'restart', restarts: 0 })
    tellEnd()
    if (asked === 'restart') await startAgain()
  }

  function crash(change: Partial<GameRecord> & { restarts: number }): void {
    const delayMs = record.autoRestart ? restartDelayMs(change.restarts) : undefined
    if (delayMs === undefined) {
      enter('crashed', { ...change, isWanted: false, restartAt: null })
      return
    }
    const restartAt = timers.now() + delayMs
    const step = `starting again at ${iso(restartAt)}`
    enter('crashed', { ...change, isWanted: true, restarts: change.restarts + 1, restartAt }, step)
    scheduleRestart(restartAt)
  }

  function scheduleRestart(at: number): void {
    cancelRestart()
    restarting = timers.after(Math.max(0, at - timers.now()), () =>
      background(
        mutex(async () => {
          if (record.power.state === 'crashed' && record.isWanted && !isDetached) await startAgain()
        }),
      ),
    )
  }

  /** What keeps it from starting may pass, such as a port that is still held. */
  async function startAgain(): Promise<void> {
    const { restarts } = record
    try {
      await start()
    } catch (error) {
      deps.onUnexpected(error)
      crash({ restarts })
    }
  }

  /** Nobody waits for it: a machine with many games answers before the last of them is up. */
  function startSoon(): void {
    enter('starting')
    const isStillWanted = () => record.isWanted && record.runId === null && !isDetached
    background(deps.startTurn(() => mutex(async () => (isStillWanted() ? startAgain() : undefined))))
  }

  function beginStop(asked: 'stop' | 'restart'): void {
    const current = run
    if (!current) return
    enter('stopping', { asked, isWanted: asked === 'restart' })
    const mine = new AbortController()
    ladder = mine
    const steps = record.launch?.stop ?? []
    const ladderOf = { run: current, steps, timers, signal: mine.signal }
    // First: a world that is held still would not be saved.
    background(deps.letGo().then(() => descend({ ...ladderOf, tell: (step) => mine === ladder && tell(step) })))
  }

  // What each action means in each state. False: it is so already.

  type Handlers = Record<Exclude<PowerAction, 'kill'>, (accept: Accept) => Promise<boolean>>
  const begin = async (accept: Accept) => {
    await start(accept)
    return true
  }
  const nothing = async () => false
  const stopNow = (asked: 'stop' | 'restart') => async (accept: Accept) => {
    if (isQueued()) return asked === 'stop' && giveUp(accept)
    await accept()
    beginStop(asked)
    return true
  }
  /** It is not started again, or at all. */
  const giveUp = async (accept: Accept) => {
    await accept()
    cancelRestart()
    enter('stopped', { isWanted: false, restartAt: null, restarts: 0 })
    return true
  }
  const active: Handlers = { start: nothing, stop: stopNow('stop'), restart: stopNow('restart') }
  const idle: Handlers = { start: begin, stop: nothing, restart: begin }
  const HANDLERS: Record<PowerState, Handlers> = {
    stopped: idle,
    sleeping: idle,
    starting: active,
    running: active,
    stopping: {
      start: async () => {
        throw fail('server_busy', 'The game is stopping. Use `restart` to have it started again after that.')
      },
      stop: (accept) => changeMind(accept, 'stop'),
      restart: (accept) => changeMind(accept, 'restart'),
    },
    crashed: {
      start: begin,
      restart: begin,
      stop: giveUp,
    },
  }

  /** While it stops: what comes after that. */
  async function changeMind(accept: Accept, asked: 'stop' | 'restart'): Promise<boolean> {
    if (record.asked === asked) return false
    await accept()
    save({ asked, isWanted: asked === 'restart' })
    return true
  }

  /** Outside the mutex: whatever hangs there, this does not. */
  async function kill(accept: Accept): Promise<boolean> {
    ladder?.abort()
    starting?.abort()
    const isPending = () => isQueued() || record.power.state === 'crashed'
    if (!run && !starting) return isPending() && mutex(async () => isPending() && giveUp(accept))
    const noted = accept()
    enter('stopping', { asked: 'kill', isWanted: false }, 'waiting for SIGKILL to end it')
    await run?.kill()
    await noted
    return true
  }

  async function act({ action, launch, limits, autoRestart, origin }: Request): Promise<boolean> {
    const cause = origin?.cause ?? null
    const accept = () => addFact({ serverId, kind: 'power.requested', cause, properties: { action } })
    if (action === 'kill') return kill(accept)
    return mutex(async () => {
      if (action !== 'stop') save({ autoRestart, limits, ...(launch ? { launch } : {}), restarts: 0 })
      return HANDLERS[record.power.state][action](accept)
    })
  }

  return {
    read,
    isActive,
    isWanted: () => record.isWanted,
    current: () => run && { run, quiesce: record.launch?.quiesce ?? null, state: record.power.state },
    startId: () => record.readyFactId,
    again: () =>
      mutex(async () => {
        if (record.power.state === 'stopping') await changeMind(accepted, 'restart')
        else if (!isActive()) await startAgain()
      }),
    async power(request) {
      const isChange = await act(request)
      return { game: read(), isChange }
    },

    async input(command, cause) {
      const error = run ? await run.input(command) : 'gone'
      if (error === 'gone') throw fail('server_not_running', 'The game does not run, so nobody reads the command.')
      if (error === 'full') throw fail('server_busy', 'The game does not read the commands that it was sent before.')
      await deps.addFact({ serverId, kind: 'console.command_sent', cause, properties: { command } })
    },

    launch: () => record.launch,
    run: () => run,
    tail: () => run?.tail(),

    recover: () =>
      mutex(async () => {
        const { runId, isWanted, restartAt, power } = record
        if (runId !== null) return takeUp(runId)
        if (!isWanted) return
        if (record.bootId !== bootId()) return startSoon()
        if (power.state === 'crashed' && restartAt !== null) scheduleRestart(restartAt)
      }),

    async end() {
      if (!isActive()) return cancelRestart()
      const over = new Promise<void>((resolve) => endings.add(resolve))
      await kill(accepted)
      if (isActive()) await over
      cancelRestart()
    },

    detach() {
      isDetached = true
      ladder?.abort()
      cancelRestart()
      run?.detach()
    },
  }

  async function takeUp(runId: string): Promise<void> {
    const found = await runtime.find({ serverId, runId }, eventsOf(runId))
    if (found === 'lost' || (hasEnded(found) && record.bootId !== bootId() && record.isWanted)) {
      save({ runId: null, asked: null })
      return record.isWanted ? startSoon() : enter('stopped')
    }
    if (hasEnded(found)) return ended(found, found.at)
    run = found
    if (record.power.state === 'starting' && run.isReady()) await comeUp()
    if (record.asked === 'kill') await run.kill()
    else if (record.asked !== null) beginStop(record.asked)
  }
}

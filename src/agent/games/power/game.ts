// The power of one game: one state, one small handler for each, one action at a time. `kill` waits for nothing.

import { fail } from '../../../contract/errors.ts'
import { newId } from '../../../kit/ids.ts'
import { iso } from '../../../kit/time.ts'
import { createMutex } from '../../../kit/waiting/mutex.ts'
import type { NewFact } from '../../journal/journal.ts'
import { bootId } from '../process-identity.ts'
import type { Run, RunEnd, RunEvents } from '../runtime.ts'
import { createSleep } from '../sleep/sleep.ts'
import { type Accept, handlersOf, type StopRequest } from './actions.ts'
import { createDiskWatch } from './disk-watch.ts'
import { isCrash, reasonOf, restartsAfter, stateAfter } from './exits.ts'
import type { Game, GameDeps, Request } from './game-deps.ts'
import { createGameState } from './game-state.ts'
import { createRestarts } from './restarts.ts'
import { createStopping } from './stopping.ts'
import { createTakeUp } from './take-up.ts'

const accepted: Accept = async () => {}

export function createGame(deps: GameDeps): Game {
  const { serverId, runtime, timers } = deps
  const mutex = createMutex()
  const game = createGameState({
    ...deps,
    changed() {
      deps.changed()
      sleep.follow()
      diskWatch.follow()
    },
  })
  const { record, save, enter } = game
  let run: Run | undefined
  let starting: AbortController | undefined
  let isDetached = false
  const endings = new Set<() => void>()

  const isInHand = () => run !== undefined || starting !== undefined
  // One that could not be taken up yet may well run.
  const isActive = () => isInHand() || record().runId !== null
  const isQueued = () => record().power.state === 'starting' && !isActive()

  /** A record of before it was kept has one for both. */
  const launchOfRun = () => record().runLaunch ?? record().launch

  const addFact = (fact: NewFact) => deps.addFact(fact).catch(deps.onUnexpected)

  /** For those who wait until nothing of it runs. */
  function tellEnd(): void {
    for (const resolve of endings) resolve()
    endings.clear()
  }

  const background = (work: Promise<unknown>) => void work.catch(deps.onUnexpected)
  const restarts = createRestarts({
    ...{ game, timers, mutex, background, startTurn: deps.startTurn, onUnexpected: deps.onUnexpected },
    isDetached: () => isDetached,
    start: () => start(),
  })
  const stopping = createStopping({ ...deps, game, background })
  const sleep = createSleep({
    ...{ serverId, game, timers, mutex, background, isActive, addFact, start },
    ...{ occupancy: deps.occupancy, openDoor: deps.openDoor, shareFiles: deps.shareFiles },
    isDetached: () => isDetached,
    fallAsleep: () => beginStop('sleep'),
  })

  const diskWatch = createDiskWatch({
    ...{ game, timers, disk: deps.disk, background },
    isDetached: () => isDetached,
    stop: (excess) =>
      mutex(async () => {
        if (record().power.state !== 'running') return
        await addFact({ serverId, kind: 'game.over_quota', cause: null, properties: { ...excess } })
        beginStop('stop')
      }),
  })

  const takeUp = createTakeUp({
    ...{ serverId, game, runtime, restarts, timers, mutex, eventsOf, isInHand, background },
    ...{ adopt, ended, lost: tellEnd, letGo: deps.letGo, onUnexpected: deps.onUnexpected },
    isDetached: () => isDetached,
  })

  // Starting.

  async function start(accept: Accept = accepted): Promise<void> {
    const { launch, limits } = record()
    deps.startHold.requireFree()
    if (!launch) throw fail('not_startable', 'Nothing says how the game of this server is started.')
    restarts.cancel()
    const mine = new AbortController()
    starting = mine
    const before = record()
    try {
      using _files = deps.shareFiles()
      await sleep.leavePort()
      await diskWatch.requireRoom()
      await runtime.check({ serverId, launch, limits })
      await deps.prepare(launch)
      mine.signal.throwIfAborted()
      const runId = newId('run', timers.now())
      const fresh = { readyFactId: newId('act', timers.now()), runningSince: null, restartAt: null, asked: null }
      const ofRun = { runId, runLaunch: launch, bootId: bootId() }
      const noted = accept()
      // Without it, nobody would find the game again.
      game.saveDurably({ ...fresh, isWanted: true, ...ofRun, ...game.inState('starting') })
      await noted
      mine.signal.throwIfAborted()
      const started = await runtime.start({ serverId, runId, launch, limits }, eventsOf(runId))
      run = started.run
      save({ runtime: started.runtime })
      // Also where that fails it has been started, and is not forgotten.
      if (mine.signal.aborted) await stopping.kill(run)
      else if (run.isReady()) await comeUp()
    } catch (error) {
      run = undefined
      const change = { runId: null, asked: null, isWanted: false }
      if (mine.signal.aborted) return enter('stopped', change)
      // As it was: nothing has run.
      if (record() !== before) save({ ...change, power: { ...before.power, step: null } })
      throw error
    } finally {
      starting = undefined
      sleep.follow()
      if (!run) tellEnd()
    }
  }

  function eventsOf(runId: string): RunEvents {
    const isCurrent = () => record().runId === runId && !isDetached
    return {
      ready: () => background(isCurrent() ? comeUp() : Promise.resolve()),
      step: (step) => isCurrent() && record().power.state === 'starting' && game.tell(step),
      lines: deps.lines,
      ended: (end) => background(mutex(async () => (isCurrent() ? ended(end) : undefined))),
    }
  }

  /** A run of an earlier service: it goes on, also with what it was told last. */
  async function adopt(found: Run): Promise<void> {
    run = found
    if (record().power.state === 'starting' && run.isReady()) await comeUp()
    const { asked } = record()
    if (asked === 'kill') await stopping.kill(run)
    else if (asked !== null) beginStop(asked)
  }

  async function comeUp(): Promise<void> {
    if (record().power.state !== 'starting') return
    // Others wait to hear of it, and the disk takes a while.
    game.enterUnsaved('running', { runningSince: timers.now() })
    const id = record().readyFactId
    if (id !== null) await addFact({ id, serverId, kind: 'game.running', cause: null, properties: {} })
  }

  // Ending.

  async function ended(end: RunEnd, at = timers.now()): Promise<void> {
    const { asked, runId, runningSince } = record()
    const reason = reasonOf(end, asked)
    const exit = { reason, code: end.code, signal: end.signal, at: iso(end.at), lastLine: end.lastLine }
    const hasCrashed = isCrash(reason, asked)
    await addFact({
      // Told again after a crash of ours, it is the same entry.
      id: (runId ?? '').replace('run_', 'act_'),
      serverId,
      kind: hasCrashed ? 'game.crashed' : asked === 'sleep' ? 'game.slept' : 'game.stopped',
      cause: null,
      properties: exit,
    })
    run = undefined
    stopping.cancel()
    game.noteExit(exit)
    // A kill that came meanwhile was answered: nothing starts it after that.
    const wish = record().asked === 'kill' ? 'kill' : asked
    const over = { runId: null, asked: null }
    if (hasCrashed && wish !== 'kill')
      restarts.crash({ ...over, restarts: restartsAfter(record().restarts, at - (runningSince ?? at)) })
    else enter(stateAfter(wish), { ...over, isWanted: wish === 'restart', restarts: 0 })
    tellEnd()
    if (wish === 'restart') await restarts.startAgain()
  }

  function beginStop(asked: StopRequest | 'sleep'): void {
    if (!run) return
    enter('stopping', { asked, isWanted: asked === 'restart' })
    stopping.descend(run, launchOfRun()?.stop ?? [])
  }

  async function giveUp(accept: Accept): Promise<true> {
    await accept()
    restarts.cancel()
    enter('stopped', { isWanted: false, restartAt: null, restarts: 0 })
    return true
  }

  async function changeMind(accept: Accept, asked: StopRequest): Promise<boolean> {
    if (record().asked === asked) return false
    await accept()
    save({ asked, isWanted: asked === 'restart' })
    return true
  }

  const handlers = handlersOf({ start, beginStop, changeMind, giveUp, isQueued })

  /** Outside the mutex: whatever hangs there, this does not. */
  async function kill(accept: Accept): Promise<boolean> {
    if (takeUp.isDue()) await mutex(takeUp.require)
    starting?.abort()
    const isPending = () => isQueued() || ['crashed', 'sleeping'].includes(record().power.state)
    if (!run && !starting) return isPending() && mutex(async () => isPending() && giveUp(accept))
    const noted = accept()
    enter('stopping', { asked: 'kill', isWanted: false }, 'waiting for SIGKILL to end it')
    if (run) await stopping.kill(run)
    await noted
    return true
  }

  async function act({ action, launch, limits, autoRestart, sleep: setting, origin }: Request): Promise<boolean> {
    const cause = origin?.cause ?? null
    const accept = () => addFact({ serverId, kind: 'power.requested', cause, properties: { action } })
    if (action === 'kill') return kill(accept)
    return mutex(async () => {
      await takeUp.require()
      if (action !== 'stop') save({ autoRestart, limits, sleep: setting, ...(launch ? { launch } : {}), restarts: 0 })
      return handlers[record().power.state][action](accept)
    })
  }

  return {
    read: game.read,
    isActive,
    isWanted: () => record().isWanted,
    current: () => run && { run, quiesce: launchOfRun()?.quiesce ?? null, state: record().power.state },
    startId: () => record().readyFactId,
    again: () =>
      mutex(async () => {
        await takeUp.require()
        if (record().power.state === 'stopping') await changeMind(accepted, 'restart')
        else if (!isActive()) await restarts.startAgain()
      }),
    async power(request) {
      const isChange = await act(request)
      return { game: game.read(), isChange }
    },

    async input(command, cause) {
      if (takeUp.isDue()) await mutex(takeUp.require)
      const error = run ? await run.input(command) : 'gone'
      if (error === 'gone') throw fail('server_not_running', 'The game does not run, so nobody reads the command.')
      if (error === 'full') throw fail('server_busy', 'The game does not read the commands that it was sent before.')
      await deps.addFact({ serverId, kind: 'console.command_sent', cause, properties: { command } })
    },

    async setSleep(setting) {
      // One that was never started is told when it is.
      const { sleep: before, launch } = record()
      if (launch && before?.afterMinutes !== setting?.afterMinutes) save({ sleep: setting })
    },

    launch: launchOfRun,
    run: () => run,
    tail: () => run?.tail(),

    recover: () =>
      mutex(async () => {
        await takeUp.recover()
        sleep.follow()
        diskWatch.follow()
      }),

    async end() {
      const over = isActive() ? new Promise<void>((resolve) => endings.add(resolve)) : undefined
      await kill(accepted)
      if (isActive()) await over
      restarts.cancel()
    },

    detach() {
      isDetached = true
      game.flush()
      sleep.follow()
      diskWatch.follow()
      stopping.cancel()
      restarts.cancel()
      takeUp.cancel()
      run?.detach()
    },
  }
}

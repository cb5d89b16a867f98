// One run of a container. Its supervisor holds its pipes and writes its console; the engine knows whether it runs. Either may go
// away for a while: the game notices neither.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { readRecord, writeRecord } from '../../../kit/files/durable-record.ts'
import { groupFoldersOf } from '../process/cgroups.ts'
import { isAlive, signalGroup } from '../process-identity.ts'
import { NO_USAGE, readRunUsage } from '../run-usage.ts'
import type { Run, RunEnd, RunEvents } from '../runtime.ts'
import { exitFile, type GameEnd, type PipesOrder, type RunRecord, runFile } from '../supervisor/protocol.ts'
import { endOf, writtenEnd } from './container-end.ts'
import { leaderOf } from './container-leader.ts'
import { createContainerLine } from './container-line.ts'
import { containerName } from './container-options.ts'
import type { ContainerStart } from './container-start.ts'
import { type ContainerOptions, type ContainerState, type Engine, saidByEngine } from './engine.ts'

const RETRY_MS = 500
const STEP_EVERY_MS = 1000
/** An init has started the game by then. */
const LEADER_TIMES = 20
const LEADER_EVERY_MS = 50

export interface ContainerRunDeps {
  engine: Engine
  start: ContainerStart
  /** The game's. */
  folder: string
  order: Omit<PipesOrder, 'isSuccessor'>
  /** Whether the container runs already. */
  isStarted: boolean
  events: RunEvents
  onUnexpected(error: unknown): void
}

export interface ContainerRun extends Run {
  /** Reaches its supervisor, or starts one. */
  attach(): Promise<void>
  /** Throws what the engine says where it does not start. */
  launch(options: ContainerOptions): Promise<void>
  /** Pulls the image first. From then on it tells what it does, and how it ended where that fails. */
  launchLater(image: string, options: ContainerOptions): void
  /** Once it was handed over: its events are told from here on, and its end is waited for. */
  handOver(): void
  /** For a container that has ended. */
  settle(state: ContainerState | undefined): Promise<RunEnd>
  /** Nothing of it is to be left. */
  discard(): Promise<void>
  /** Before it is handed over, where it could not be discarded: it ends once nothing of it is left. */
  giveUp(): void
}

export function createContainerRun(deps: ContainerRunDeps): ContainerRun {
  const { engine, folder, order, events, onUnexpected } = deps
  const { runId } = order
  const name = containerName(runId)
  const detaching = new AbortController()
  const pulling = new AbortController()
  let hasStarted = deps.isStarted
  let isPulling = false
  let isHandedOver = false
  let isGivenUp = false
  let isEngineAway = false
  let wasReady = false
  let lastTail = 0
  let groups: string[] | undefined
  let finishing: Promise<RunEnd> | undefined

  const recordNow = () => readRecord<RunRecord>(join(folder, runFile(runId)))
  const isReady = () => hasStarted && (supervisor.current()?.status().isReady ?? recordNow()?.isReady ?? false)
  const step = (text: string | null) => events.step?.(text)
  const background = (work: Promise<unknown>) => void work.catch(onUnexpected)

  const supervisor = createContainerLine({
    ...{ folder, order, onUnexpected },
    hasStarted: () => hasStarted,
    isWanted: () => !finishing,
    detaching: detaching.signal,
    changed: tellChange,
  })

  function tellChange(): void {
    if (!isHandedOver || detaching.signal.aborted) return
    if (isReady() && !wasReady) {
      wasReady = true
      events.ready()
    }
    events.lines()
  }

  const pause = () => delay(RETRY_MS, undefined, { signal: detaching.signal, ref: false }).catch(() => {})

  async function launch(options: ContainerOptions): Promise<void> {
    await deps.start(name, options, AbortSignal.any([pulling.signal, detaching.signal]))
    hasStarted = true
    await supervisor.current()?.ask({ op: 'begin' })
    // It runs: an engine that goes away now is waited for like any other time.
    await noteLeader().catch(onUnexpected)
    if (pulling.signal.aborted) await kill()
  }

  async function noteLeader(): Promise<void> {
    for (let time = 0; time < LEADER_TIMES; time++) {
      const state = await engine.inspect(name)
      const leader = state && leaderOf(state)
      if (leader === undefined) return
      if (leader !== 'none yet') return void (await supervisor.current()?.ask({ op: 'leader', game: leader }))
      await delay(LEADER_EVERY_MS)
    }
  }

  async function pullAndLaunch(image: string, options: ContainerOptions): Promise<void> {
    try {
      step(`pulling ${image}`)
      const signal = AbortSignal.any([pulling.signal, detaching.signal])
      signal.throwIfAborted()
      await engine.pull(image, everySecond(step), signal)
      isPulling = false
      step(null)
      await launch(options)
    } catch (error) {
      if (detaching.signal.aborted) return
      const isKilled = pulling.signal.aborted
      const text = `The image ${image} could not be used: ${saidByEngine(error)}`
      if (!isKilled) await supervisor.current()?.ask({ op: 'note', text })
      await removeUntilConfirmed()
      if (detaching.signal.aborted) return
      return tellEnd(
        await finish({ code: null, signal: isKilled ? 'SIGKILL' : null, isOutOfMemory: false, hasBegun: false }),
      )
    }
    tellChange()
    await watch()
  }

  /** An engine that was away may have started it: until it says that nothing is left, it counts as running. */
  async function removeUntilConfirmed(): Promise<void> {
    while (!detaching.signal.aborted) {
      try {
        return await engine.remove(name)
      } catch (error) {
        if (!isEngineAway) onUnexpected(error)
        isEngineAway = true
        step('waiting for the engine, to remove what it may have started')
      }
      await pause()
    }
  }

  async function giveUp(): Promise<void> {
    await removeUntilConfirmed()
    // The next service asks again: that nothing runs any more has not been confirmed.
    if (detaching.signal.aborted) return
    tellEnd(await finish({ code: null, signal: 'SIGKILL', isOutOfMemory: false }))
  }

  /** However often the engine goes away meanwhile. */
  async function watch(): Promise<void> {
    while (!detaching.signal.aborted) {
      try {
        if (!recordNow()?.game) await noteLeader()
        await engine.wait(name, detaching.signal)
        const state = await engine.inspect(name)
        if (state?.status !== 'running') return tellEnd(await settle(state))
      } catch (error) {
        // Said once.
        if (!detaching.signal.aborted && !isEngineAway) onUnexpected(error)
        isEngineAway = true
      }
      await pause()
    }
  }

  function tellEnd(end: RunEnd): void {
    if (!detaching.signal.aborted) events.ended(end)
  }

  const settle = (state: ContainerState | undefined) => finish(endOf(state), state?.endedAt)

  function finish(end: GameEnd, at = Date.now()): Promise<RunEnd> {
    finishing ??= (async () => {
      const file = join(folder, exitFile(runId))
      await supervisor.whenAttached()
      const wasTold = (await supervisor.current()?.ask({ op: 'ended', end })) === null
      const last = wasTold ? await writtenEnd(file) : undefined
      const unheard = { wasReady: recordNow()?.isReady ?? false, saidStop: false, lastLine: null }
      const found: RunEnd = { ...(last ?? { ...end, ...unheard }), at }
      // Whoever asks later finds it there, and no container any more.
      if (!last) writeRecord(file, found)
      background(discard())
      return found
    })()
    return finishing
  }

  async function discard(): Promise<void> {
    await engine.remove(name)
    if (!finishing) void supervisor.current()?.ask({ op: 'quit' })
    rmSync(order.pipesFolder, { recursive: true, force: true })
  }

  /** By the kernel where that is possible: an engine that hangs must not keep a game alive. */
  async function kill(): Promise<void> {
    pulling.abort()
    if (!hasStarted || signalLeader('SIGKILL')) return
    await engine.signal(name, 'SIGKILL').catch(async (error: unknown) => {
      // It may have ended by itself.
      if ((await engine.inspect(name))?.status === 'running') throw error
    })
  }

  /** To everything in its group: an engine tells only the first process of a container, which may be a shell that waits. */
  function signalLeader(signal: NodeJS.Signals): boolean {
    const leader = recordNow()?.game
    return leader ? signalGroup(leader, signal) : false
  }

  return {
    runId,
    attach: supervisor.attach,
    launch,
    settle,
    discard,
    kill,
    giveUp() {
      isGivenUp = true
    },
    launchLater(image, options) {
      isPulling = true
      setImmediate(() => background(pullAndLaunch(image, options)))
    },
    giveUpWaiting() {
      if (isPulling) pulling.abort()
      return isPulling
    },
    handOver: () =>
      void setImmediate(() => {
        isHandedOver = true
        wasReady = false
        tellChange()
        if (isGivenUp) background(giveUp())
        else if (hasStarted) background(watch())
      }),
    isReady,
    tail() {
      lastTail = supervisor.current()?.status().tail ?? lastTail
      return lastTail
    },
    async input(text) {
      if (!hasStarted || finishing) return 'gone'
      // Where nobody answers for the moment, nobody reads it either.
      return supervisor.current()?.ask({ op: 'input', text }) ?? 'full'
    },
    async usage() {
      const leader = recordNow()?.game
      if (!leader || !isAlive(leader)) return NO_USAGE
      groups ??= groupFoldersOf(leader.pid)
      return readRunUsage(leader.pid, groups)
    },
    async signal(signal) {
      if (!signalLeader(signal)) await engine.signal(name, signal)
    },
    detach() {
      detaching.abort()
      supervisor.current()?.close()
    },
  }
}

function everySecond(tell: (step: string) => void): (step: string) => void {
  let last = ''
  let nextAt = 0
  return (step) => {
    if (step === last || performance.now() < nextAt) return
    last = step
    nextAt = performance.now() + STEP_EVERY_MS
    tell(step)
  }
}

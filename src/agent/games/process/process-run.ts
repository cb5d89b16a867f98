// One run of a process, as its supervisor tells of it. The line to the supervisor may be cut, and one that waits for a disk may
// not answer for a while: as long as it lives the run goes on, and only one that has ended leaves a game without a supervisor.
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { readRecord } from '../../../kit/files/durable-record.ts'
import { readLastLine } from '../console/console-reader.ts'
import { isAlive, signalGroup } from '../process-identity.ts'
import { NO_USAGE, type RunUsage, readRunUsage } from '../run-usage.ts'
import type { Run, RunEnd, RunEvents } from '../runtime.ts'
import { exitFile, type RunRecord, runFile } from '../supervisor/protocol.ts'
import { type LineEvents, reachSupervisor, type SupervisorLine } from '../supervisor/supervisor-client.ts'
import { removeGroups } from './cgroups.ts'
import { endWithoutSupervisor, killRun } from './run-ending.ts'

/** How long a run is waited for whose supervisor lives and does not answer. It is handed over then, and goes on. */
const ANSWERS_WITHIN_MS = 1000
const AGAIN_AFTER_MS = 1000

export interface FollowRequest {
  runId: string
  /** The game's. */
  folder: string
  consoleFolder: string
  /** Whether it was started just now: then it is handed over whatever keeps us from following it, and followed later. */
  isStarted: boolean
  events: RunEvents
  onUnexpected(error: unknown): void
}

/** The run, or how it ended. */
export async function followRun(request: FollowRequest): Promise<Run | RunEnd> {
  const { runId, folder, events } = request
  const runEnd = () => readRecord<RunEnd>(join(folder, exitFile(runId)))
  const recordNow = () => readRecord<RunRecord>(join(folder, runFile(runId))) as RunRecord
  const background = (work: Promise<unknown>) => void work.catch(request.onUnexpected)
  const detaching = new AbortController()
  let line: SupervisorLine | undefined
  let lastTail = 0
  let wasReady = false
  let isOver = false

  const lineEvents: LineEvents = {
    changed() {
      const status = line?.status()
      if (!status || detaching.signal.aborted) return
      if (status.isReady && !wasReady) {
        wasReady = true
        events.ready()
      }
      events.lines()
      if (status.end) over(status.end)
    },
    closed() {
      if (detaching.signal.aborted || isOver || !line) return
      lastTail = line.status().tail
      line = undefined
      background(takeAgain())
    },
  }

  function over(end: RunEnd): void {
    if (isOver || detaching.signal.aborted) return
    isOver = true
    background((async () => removeGroups(recordNow().cgroups))())
    events.ended(end)
  }

  /** Undefined once the run has ended, or its supervisor has, with or without a word. */
  const reach = async () =>
    reachSupervisor(folder, recordNow(), lineEvents, {
      signal: detaching.signal,
      isOver: () => runEnd() !== undefined,
    })

  async function take(found: SupervisorLine | undefined): Promise<void> {
    line = found
    if (line) return lineEvents.changed()
    if (!detaching.signal.aborted) over(await endOf())
  }

  /** Whatever fails on the way, such as a disk or the number of descriptors, is tried again: nobody else would. */
  async function takeAgain(reaching = reach()): Promise<void> {
    for (;;) {
      try {
        return await take(await reaching)
      } catch (error) {
        request.onUnexpected(error)
        await delay(AGAIN_AFTER_MS, undefined, { signal: detaching.signal }).catch(() => {})
      }
      if (isOver || detaching.signal.aborted) return
      reaching = reach()
    }
  }

  const endOf = async () => runEnd() ?? (await endWithoutSupervisor(recordNow()))

  let named: RunRecord | undefined
  async function usage(): Promise<RunUsage> {
    // It does not change once it names the game.
    if (!named?.game) named = recordNow()
    const { game, cgroups } = named
    const folders = cgroups.map((group) => group.folder)
    return game && isAlive(game) ? readRunUsage(game.pid, folders) : NO_USAGE
  }

  const reaching = reach()
  const first = await within(ANSWERS_WITHIN_MS, reaching).catch((error: unknown) => {
    if (!request.isStarted) throw error
    return 'late' as const
  })
  if (first === 'late') {
    lastTail = await readLastLine(request.consoleFolder).catch(() => 0)
    background(takeAgain(reaching))
  } else if (!first) {
    const end = await endOf()
    await removeGroups(recordNow().cgroups)
    return end
  } else {
    line = first
    wasReady = line.status().isReady
    // What came before anybody could be told of it.
    queueMicrotask(() => lineEvents.changed())
  }
  return {
    runId,
    isReady: () => line?.status().isReady ?? wasReady,
    tail: () => line?.status().tail ?? lastTail,
    // Where nobody answers for the moment, nobody reads it either.
    input: async (text) => (line ? line.ask({ op: 'input', text }) : 'full'),
    async signal(signal) {
      const { game } = recordNow()
      // Where the disk has not taken it yet, its supervisor knows it.
      if (game) signalGroup(game, signal)
      else await line?.ask({ op: 'signal', signal })
    },
    usage,
    async kill() {
      // The supervisor also knows a game that is only being made.
      void line?.ask({ op: 'signal', signal: 'SIGKILL' })
      await killRun(recordNow)
    },
    detach() {
      detaching.abort()
      line?.close()
    },
  }
}

/** It ended before we could listen to it: that is told like any other end. */
export function endedRun(runId: string, end: RunEnd, events: RunEvents): Run {
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

async function within<T>(ms: number, work: Promise<T>): Promise<T | 'late'> {
  const done = new AbortController()
  const late = delay(ms, 'late' as const, { signal: done.signal }).catch(() => 'late' as const)
  try {
    return await Promise.race([work, late])
  } finally {
    done.abort()
  }
}
